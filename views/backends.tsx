/** The backends card: where memories live, in which order, and how each of them is. */
import { Cancel, Dialog, DialogLink, Submit } from "./actions.tsx";
import { type Errors, FormErrors, InputField, SecretField, SelectField, TextareaField } from "./fields.tsx";
import { type State, Word } from "./figures.tsx";
import { ms } from "./format.ts";
import { Icon } from "./icons.tsx";

export interface BackendView {
  id: string;
  name: string;
  where: string;
  role: "primary" | "fallback" | "not used";
  /** 1, 2 … for a fallback. */
  place: number | null;
  state: State;
  word: string;
  latencyMs: number | null;
  /** Built in ones cannot be edited. */
  editable: boolean;
}

export const BackendsCard = ({ backends }: { backends: readonly BackendView[] }) => (
  <div class="stack" id="backends-card">
    <div class="table-wrap">
      <table class="table table-stack">
        <thead>
          <tr>
            <th>Backend</th>
            <th>Role</th>
            <th>Health</th>
            <th class="num">Latency</th>
            <th>
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {backends.map((backend) => (
            <tr>
              <td>
                <b class="table-title">{backend.name}</b>
                <span class="table-sub mono">{backend.where}</span>
              </td>
              <td data-label="Role">{backend.place ? `${backend.role} ${backend.place}` : backend.role}</td>
              <td data-label="Health">
                <Word state={backend.state}>{backend.word}</Word>
              </td>
              <td class="num" data-label="Latency">
                {backend.latencyMs === null ? "–" : ms(backend.latencyMs)}
              </td>
              <td>
                <div class="actions">
                  {backend.role === "primary" ? null : (
                    <DialogLink
                      class="btn btn-quiet btn-sm"
                      to={`/dashboard/settings/backends/${encodeURIComponent(backend.id)}/role`}
                      label={`Change the role of ${backend.name}`}
                    >
                      Role…
                    </DialogLink>
                  )}
                  {backend.editable ? (
                    <DialogLink
                      class="btn btn-quiet btn-sm"
                      to={`/dashboard/settings/backends/${encodeURIComponent(backend.id)}`}
                      label={`Edit ${backend.name}`}
                    >
                      Edit
                    </DialogLink>
                  ) : null}
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
    <div class="form-foot">
      <DialogLink class="btn" to="/dashboard/settings/backends/new">
        <Icon name="plus" />
        Add backend
      </DialogLink>
    </div>
  </div>
);

export interface BackendDraft {
  id: string;
  type: string;
  displayName: string;
  baseUrl: string;
  /** Masked where one is stored. */
  apiKeyMasked: string;
  databaseId: string;
  /** Everything else, as JSON. */
  more: string;
}

const ENGINE = "/dashboard/memory?tab=engine";
const labels = {
  id: "Name",
  type: "Kind",
  displayName: "Shown as",
  baseUrl: "Base URL",
  apiKey: "Key",
  databaseId: "Database id",
  more: "Further options",
};

export const BackendDialog = ({
  draft,
  errors,
  known,
}: {
  draft: BackendDraft;
  errors: Errors;
  /** True when it is edited, false when it is new. */
  known: boolean;
}) => {
  const form = "backend";
  const field = { form, errors };
  const action = known
    ? `/dashboard/settings/backends/${encodeURIComponent(draft.id)}`
    : "/dashboard/settings/backends/new";
  return (
    <Dialog
      id="backend"
      title={known ? `Backend ${draft.id}` : "Add a backend"}
      close={ENGINE}
      form={{ action }}
      foot={
        <>
          {known ? (
            <button class="btn btn-danger-quiet start" name="remove" value="true" formnovalidate>
              Remove
            </button>
          ) : null}
          <Cancel to={ENGINE} />
          <Submit>{known ? "Save" : "Add backend"}</Submit>
        </>
      }
    >
      <FormErrors form={form} errors={errors} labels={labels} />
      <div class="fields">
        <InputField
          {...field}
          name="id"
          label={labels.id}
          kind="mono"
          value={draft.id}
          more={known ? { readonly: true } : { required: true, autofocus: true, placeholder: "brain" }}
        />
        <SelectField
          {...field}
          name="type"
          label={labels.type}
          value={draft.type}
          options={[
            { value: "http", text: "HTTP" },
            { value: "obsidian", text: "Obsidian" },
            { value: "notion", text: "Notion" },
            { value: "qdrant", text: "Qdrant" },
          ]}
        />
        <InputField
          {...field}
          name="displayName"
          label={labels.displayName}
          optional="optional"
          value={draft.displayName}
        />
        <InputField
          {...field}
          name="baseUrl"
          label={labels.baseUrl}
          optional="where the kind has none of its own"
          kind="mono"
          value={draft.baseUrl}
        />
        <SecretField {...field} name="apiKey" label={labels.apiKey} stored={draft.apiKeyMasked} />
        <InputField
          {...field}
          name="databaseId"
          label={labels.databaseId}
          optional="Notion"
          kind="mono"
          value={draft.databaseId}
        />
      </div>
      <TextareaField
        {...field}
        name="more"
        label={labels.more}
        optional="JSON object"
        hint="For example headers, timeout, endpoints, queryParams, pathParams."
        value={draft.more}
        rows={3}
        more={{ spellcheck: "false" }}
      />
    </Dialog>
  );
};

export const BackendRoleDialog = ({
  id,
  name,
  role,
  canBePrimary,
}: {
  id: string;
  name: string;
  role: string;
  canBePrimary: boolean;
}) => (
  <Dialog
    id="backend-role"
    title={`What should ${name} do?`}
    small
    close={ENGINE}
    form={{ action: `/dashboard/settings/backends/${encodeURIComponent(id)}/role` }}
    foot={
      <>
        <Cancel to={ENGINE} />
        <Submit>Save</Submit>
      </>
    }
  >
    <div class="choices">
      <label class="choice">
        <input type="radio" name="role" value="none" {...(role === "not used" ? { checked: true } : {})} />
        <span>
          <span class="label">Not used</span>
          <span class="hint">Its settings stay.</span>
        </span>
      </label>
      <label class="choice">
        <input
          type="radio"
          name="role"
          value="fallback"
          {...(role === "fallback" ? { checked: true } : {})}
        />
        <span>
          <span class="label">Fallback</span>
          <span class="hint">Follows changes in the background, and answers when the first one cannot.</span>
        </span>
      </label>
      {canBePrimary ? (
        <label class="choice">
          <input type="radio" name="role" value="primary" />
          <span>
            <span class="label">Primary</span>
            <span class="hint">Memories live there from now on. What is here now is not moved.</span>
          </span>
        </label>
      ) : null}
    </div>
  </Dialog>
);
