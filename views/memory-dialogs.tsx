/** Dialogs of the memory pages: add, compact, import, delete for good. */
import { type Memory, memoryTypes } from "../src/memory/types.ts";
import { Cancel, Dialog, Submit } from "./actions.tsx";
import { type Errors, FieldError, FormErrors, InputField, SelectField, TextareaField } from "./fields.tsx";
import { count, cut, num } from "./format.ts";
import { Glyph } from "./icons.tsx";
import { type Owner, ownerName, ownerOptions } from "./owners.ts";
import { Text, voice } from "./parts.tsx";

export const HOME = "/dashboard/memory";

const typeHints: Record<(typeof memoryTypes)[number], string> = {
  factual: "A preference, a habit, a fact",
  episodic: "A decision at a moment",
  procedural: "How to do something",
  semantic: "General knowledge",
};

export interface NewMemoryDraft {
  content: string;
  key: string;
  type: string;
  apiKeyId: string;
  pinned: boolean;
}

const addLabels = { content: "What to remember", key: "Key", type: "Type", apiKeyId: "Owner" };

export const AddDialog = ({
  draft,
  errors,
  owners,
}: {
  draft: NewMemoryDraft;
  errors: Errors;
  owners: readonly Owner[];
}) => {
  const field = { form: "add", errors };
  const fine = Object.keys(errors).length === 0;
  return (
    <Dialog
      id="add"
      title="Add a memory"
      close={HOME}
      form={{ action: "/dashboard/memory/new" }}
      foot={
        <>
          <label class="inline start note">
            <input type="checkbox" name="pinned" value="true" {...(draft.pinned ? { checked: true } : {})} />{" "}
            Pin: keep past retention
          </label>
          <Cancel to={HOME} />
          <Submit>Add memory</Submit>
        </>
      }
    >
      <FormErrors form="add" errors={errors} labels={addLabels} />
      <TextareaField
        {...field}
        name="content"
        label={addLabels.content}
        hint="One whole statement, as you would say it about the person."
        value={draft.content}
        more={{ required: true, dir: "auto", ...(fine ? { autofocus: true } : {}) }}
      />
      <fieldset class="field">
        <legend>Type</legend>
        <div class="choices choices-2">
          {memoryTypes.map((type) => (
            <label class="choice">
              <input
                type="radio"
                name="type"
                value={type}
                {...(draft.type === type ? { checked: true } : {})}
              />
              <span>
                <span class="label">
                  <Glyph type={type} />
                  {type[0]!.toUpperCase() + type.slice(1)}
                </span>
                <span class="hint">{typeHints[type]}</span>
              </span>
            </label>
          ))}
        </div>
        <FieldError {...field} name="type" />
      </fieldset>
      <div class="fields">
        <InputField
          {...field}
          name="key"
          label={addLabels.key}
          optional="optional"
          value={draft.key}
          kind="mono"
          more={{ maxlength: 200, autocomplete: "off" }}
        />
        <SelectField
          {...field}
          name="apiKeyId"
          label={addLabels.apiKeyId}
          options={ownerOptions(owners, draft.apiKeyId)}
          value={draft.apiKeyId}
        />
      </div>
    </Dialog>
  );
};

export const DeleteDialog = ({
  memory,
  owners,
  receipts,
  back,
}: {
  memory: Memory;
  owners: readonly Owner[];
  /** How many receipts hold a copy of the text. */
  receipts: number;
  back: string;
}) => (
  <Dialog
    id="delete"
    title="Delete this memory for good?"
    small
    close={back}
    form={{ action: `/dashboard/memory/${memory.id}/delete` }}
    foot={
      <>
        <Cancel to={back} focus>
          Keep it
        </Cancel>
        <Submit kind="danger">Delete for good</Submit>
      </>
    }
  >
    <blockquote class="quote quote-lg" {...voice(memory.content)}>
      <Text text={cut(memory.content, 400)} />
    </blockquote>
    <p class="prose">
      Its history, its place in every index
      {receipts > 0
        ? ` and its copies in ${count(receipts, "receipt")} go`
        : " and any copy in a receipt go"}{" "}
      with it. {ownerName(owners, memory.apiKeyId)} will not learn it again from old text. This cannot be
      undone; archiving can.
    </p>
    <label class="inline">
      <input type="checkbox" name="source" value="true" /> Delete the exchange it came from, too
    </label>
  </Dialog>
);

export const BulkDeleteDialog = ({
  ids,
  samples,
}: {
  ids: readonly string[];
  samples: readonly string[];
}) => (
  <Dialog
    id="delete"
    title={`Delete ${count(ids.length, "memory", "memories")} for good?`}
    small
    close={HOME}
    form={{ action: "/dashboard/memory/bulk-delete" }}
    foot={
      <>
        <Cancel to={HOME} focus>
          Keep them
        </Cancel>
        <Submit kind="danger">Delete {num(ids.length)} for good</Submit>
      </>
    }
  >
    {ids.map((id) => (
      <input type="hidden" name="id" value={id} />
    ))}
    <ul class="dropped scroll-list">
      {samples.slice(0, 8).map((text) => (
        <li {...voice(text)}>
          <Text text={cut(text, 120)} />
        </li>
      ))}
      {ids.length > 8 ? <li class="note">and {num(ids.length - 8)} more</li> : null}
    </ul>
    <p class="prose">
      Histories, indexes and copies in receipts go with them. Pinned ones stay. This cannot be undone;
      archiving can.
    </p>
  </Dialog>
);
