/** A memory in a list, and the form that takes its place. */
import { type Memory, memoryTypes } from "../src/memory/types.ts";
import { DialogLink, Submit } from "./actions.tsx";
import { type Errors, FormErrors, InputField, SelectField, TextareaField } from "./fields.tsx";
import { ago, cut, cutWide, memoryHref, num, until } from "./format.ts";
import { Icon, TypeWord } from "./icons.tsx";
import { type Owner, ownerName } from "./owners.ts";
import { Text, voice, When } from "./parts.tsx";

/** What an edit form holds: texts as they were typed. */
export interface MemoryDraft {
  content: string;
  key: string;
  type: string;
  expiresAt: string;
}

export const name = (memory: Memory) => cutWide(memory.content.slice(0, 200).replaceAll(/\s+/g, " "), 30);

/** Why a row stands out: chips after its meta line. */
const Chips = ({ memory }: { memory: Memory }) => (
  <>
    {memory.pinned ? <span class="chip">pinned</span> : null}
    {memory.status === "active" ? null : <span class="chip">{memory.status}</span>}
    {memory.origin === "assistant" ? <span class="chip">said by the assistant</span> : null}
    {memory.origin === "summary" ? <span class="chip">summary</span> : null}
    {memory.origin === "import" || memory.origin === "mcp" ? <span class="chip">{memory.origin}</span> : null}
    {memory.expiresAt ? <span class="chip">expires {until(memory.expiresAt)}</span> : null}
  </>
);

/** Buttons of a row belong to the form #act: its answer brings the changed row, or takes it away. */
export const MemoryRow = ({
  memory,
  owners,
  isNew,
  focus,
}: {
  memory: Memory;
  owners: readonly Owner[];
  isNew?: boolean;
  /** Which control of the row gets the focus after a swap. */
  focus?: "edit" | "more";
}) => {
  const { id } = memory;
  const label = name(memory);
  const live = memory.status === "active" || memory.status === "pending";
  const classes = [
    "memory",
    memory.pinned ? "is-pinned" : "",
    live ? "" : "is-faded",
    isNew ? "is-new" : "",
  ].filter(Boolean);
  return (
    <li class={classes.join(" ")} id={`m-${id}`}>
      <input type="checkbox" name="id" value={id} form="act" aria-label={`Select: ${label}`} />
      <div class="memory-main">
        <p class="memory-text" {...voice(memory.content)}>
          <a href={memoryHref(id)}>
            <Text text={cutWide(memory.content, 180)} />
          </a>
        </p>
        <p class="memory-meta">
          <TypeWord type={memory.type} />
          {memory.key ? <code>{cut(memory.key, 60)}</code> : null}
          <span>{ownerName(owners, memory.apiKeyId)}</span>
          <span class="only-sm">{ago(memory.createdAt)}</span>
          <Chips memory={memory} />
        </p>
      </div>
      <span class={memory.accessCount ? "memory-uses" : "memory-uses is-zero"}>
        {memory.accessCount ? `${num(memory.accessCount)}×` : "never"}
      </span>
      <When at={memory.createdAt} class="memory-when">
        {ago(memory.createdAt)}
      </When>
      <div class="memory-actions">
        <a
          class="tool only-lg"
          href={memoryHref(id, "edit")}
          hx-get=""
          hx-target="closest li"
          aria-label={`Edit: ${label}`}
          {...(focus === "edit" ? { autofocus: true } : {})}
        >
          <Icon name="edit" />
        </a>
        <button
          class="tool"
          form="act"
          name={memory.status === "archived" ? "unarchive" : "archive"}
          value={id}
          aria-label={`${memory.status === "archived" ? "Bring back" : "Archive"}: ${label}`}
        >
          <Icon name={memory.status === "archived" ? "undo" : "archive"} />
        </button>
        <button
          class="tool"
          type="button"
          popovertarget={`o-${id}`}
          aria-label={`More for: ${label}`}
          {...(focus === "more" ? { autofocus: true } : {})}
        >
          <Icon name="more" />
        </button>
        <div class="menu" id={`o-${id}`} popover="auto">
          <button form="act" name={memory.pinned ? "unpin" : "pin"} value={id}>
            <Icon name="pin" />
            {memory.pinned ? "Unpin" : "Pin"}
          </button>
          <DialogLink to={memoryHref(id, "delete")}>
            <Icon name="trash" />
            Delete for good…
          </DialogLink>
        </div>
      </div>
    </li>
  );
};

export const draftOf = (memory: Memory): MemoryDraft => ({
  content: memory.content,
  key: memory.key ?? "",
  type: memory.type,
  expiresAt: memory.expiresAt?.slice(0, 10) ?? "",
});

const editLabels = { content: "What is remembered", key: "Key", type: "Type", expiresAt: "Forget after" };

/** The form in place of a row. Saving answers with the row, a mistake with this form at 422. */
export const MemoryEdit = ({
  id,
  draft,
  errors,
  back,
}: {
  id: string;
  draft: MemoryDraft;
  errors: Errors;
  /** Where Cancel goes without script. */
  back: string;
}) => {
  const form = `edit-${id}`;
  const field = { form, errors };
  const fine = Object.keys(errors).length === 0;
  return (
    <li class="memory-edit" id={`m-${id}`}>
      <form
        method="post"
        action={memoryHref(id, "edit")}
        hx-post={memoryHref(id, "edit")}
        hx-target="closest li"
        hx-disable="find .btn-primary"
        aria-label="Edit memory"
      >
        <FormErrors form={form} errors={errors} labels={editLabels} />
        <div class="fields">
          <TextareaField
            {...field}
            name="content"
            label={editLabels.content}
            wide
            value={draft.content}
            rows={2}
            more={{ required: true, dir: "auto", ...(fine ? { autofocus: true } : {}) }}
          />
          <InputField
            {...field}
            name="key"
            label={editLabels.key}
            class="span-2"
            value={draft.key}
            kind="mono"
            more={{ maxlength: 200 }}
          />
          <SelectField
            {...field}
            name="type"
            label={editLabels.type}
            class="span-2 half"
            options={memoryTypes}
            value={draft.type}
          />
          <InputField
            {...field}
            name="expiresAt"
            label={editLabels.expiresAt}
            class="span-2 half"
            value={draft.expiresAt}
            more={{ type: "date" }}
          />
        </div>
        <div class="form-foot">
          <Submit>Save</Submit>
          <a class="btn btn-quiet" href={back} hx-get={memoryHref(id, "row")} hx-target="closest li">
            Cancel
          </a>
          <p class="note push only-lg">The old text stays in the history.</p>
        </div>
      </form>
    </li>
  );
};
