/** Dialogs of the memory pages: add, compact, import, delete for good. */
import { type Memory, memoryTypes } from "../src/memory/types.ts";
import { ago, count, cut, num } from "./format.ts";
import { Glyph, Icon } from "./icons.tsx";
import { type Owner, ownerName, ownerOptions } from "./owners.ts";
import { Disclosure, Text, voice } from "./parts.tsx";
import { Cancel, Dialog, Submit } from "./actions.tsx";
import { Ledger } from "./figures.tsx";
import { type Errors, Field, FormErrors, Input, Select, Textarea } from "./fields.tsx";

const HOME = "/dashboard/memory";

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
      <Field
        {...field}
        name="content"
        label={addLabels.content}
        hint="One whole statement, as you would say it about the person."
      >
        <Textarea
          {...field}
          name="content"
          value={draft.content}
          more={{ required: true, dir: "auto", ...(fine ? { autofocus: true } : {}) }}
        />
      </Field>
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
      </fieldset>
      <div class="fields">
        <Field {...field} name="key" label={addLabels.key} optional="optional">
          <Input
            {...field}
            name="key"
            value={draft.key}
            kind="mono"
            more={{ maxlength: 200, autocomplete: "off" }}
          />
        </Field>
        <Field {...field} name="apiKeyId" label={addLabels.apiKeyId}>
          <Select
            {...field}
            name="apiKeyId"
            options={[...ownerOptions(owners, draft.apiKeyId), { value: "shared", text: "shared pool" }]}
            value={draft.apiKeyId}
          />
        </Field>
      </div>
    </Dialog>
  );
};

export interface CompactPreview {
  candidates: {
    id: string;
    type: string;
    key: string | null;
    tokens: number;
    createdAt: string;
    text?: string;
  }[];
  candidateCount: number;
  totalTokens: number;
  tokensSaved: number;
  /** How many summaries would be made: one for each owner that has candidates. */
  summaries: number;
}

export const CompactResult = ({ preview }: { preview: CompactPreview }) => (
  <section id="compact-preview" class="stack" aria-label="What would happen" aria-live="polite">
    <Ledger
      rows={[
        ["Memories to condense", num(preview.candidateCount)],
        ["Summaries they become", num(preview.summaries)],
        ["Tokens now", num(preview.totalTokens)],
        ["Tokens afterwards", num(Math.max(0, preview.totalTokens - preview.tokensSaved))],
        ["Saved", count(preview.tokensSaved, "token"), "ledger-total"],
      ]}
    />
    {preview.candidateCount > 0 ? (
      <Disclosure title={`Look at the ${count(preview.candidateCount, "candidate")}`}>
        <ul class="disclosure-body dropped scroll-list">
          {preview.candidates.slice(0, 100).map((candidate) => (
            <li>
              <Text text={cut(candidate.text ?? candidate.key ?? candidate.id, 120)} />
              <span class="reason">
                {candidate.type}, {ago(candidate.createdAt)}, {count(candidate.tokens, "token")}
              </span>
            </li>
          ))}
          {preview.candidateCount > 100 ? (
            <li class="note">and {num(preview.candidateCount - 100)} more</li>
          ) : null}
        </ul>
      </Disclosure>
    ) : (
      <p class="note">Nothing is that old. Choose fewer days to condense more.</p>
    )}
  </section>
);

/** A look at every memory takes a while, so the dialog comes first and asks for it. */
const CompactWaiting = ({ ask }: { ask: boolean }) => (
  <section
    id="compact-preview"
    aria-label="What would happen"
    aria-live="polite"
    {...(ask
      ? { "hx-get": "/dashboard/memory/compact", "hx-trigger": "load", "hx-include": "closest form" }
      : {})}
  >
    <p class="note">{ask ? "Looking at the memories…" : "Mend the field above first."}</p>
  </section>
);

export interface CompactDraft {
  olderThanDays: string;
  apiKeyId: string;
}

export const CompactDialog = ({
  draft,
  errors,
  preview,
  owners,
}: {
  draft: CompactDraft;
  errors: Errors;
  preview: CompactPreview | null;
  owners: readonly Owner[];
}) => {
  const field = { form: "compact", errors };
  const hx = {
    "hx-get": "/dashboard/memory/compact",
    "hx-include": "closest form",
    "hx-target": "#compact-preview",
  };
  return (
    <Dialog
      id="compact"
      title="Compact old memories"
      close={HOME}
      form={{ action: "/dashboard/memory/compact" }}
      foot={
        <>
          <Cancel to={HOME} />
          <Submit>
            <span id="compact-do">
              {preview && preview.candidateCount > 0
                ? `Compact ${count(preview.candidateCount, "memory", "memories")}`
                : "Compact"}
            </span>
          </Submit>
        </>
      }
    >
      <p class="prose">
        Each owner's old memories become one summary. The originals are archived and can be restored. Pinned
        memories and those used lately stay as they are.
      </p>
      <div class="fields">
        <Field {...field} name="olderThanDays" label="Older than">
          <div class="inline">
            <Input
              {...field}
              name="olderThanDays"
              kind="num"
              value={draft.olderThanDays}
              more={{
                type: "number",
                min: 1,
                max: 365,
                required: true,
                ...(Object.keys(errors).length === 0 ? { autofocus: true } : {}),
                "hx-trigger": "input delay:300ms",
                ...hx,
              }}
            />
            <span class="unit">days</span>
          </div>
        </Field>
        <Field {...field} name="apiKeyId" label="Owner">
          <Select
            {...field}
            name="apiKeyId"
            options={[{ value: "", text: "All keys, one by one" }, ...ownerOptions(owners, draft.apiKeyId)]}
            value={draft.apiKeyId}
            more={hx}
          />
        </Field>
      </div>
      <noscript>
        <button class="btn" formmethod="get" formaction="/dashboard/memory/compact" name="look" value="1">
          Look what would happen
        </button>
      </noscript>
      {preview ? (
        <CompactResult preview={preview} />
      ) : (
        <CompactWaiting ask={Object.keys(errors).length === 0} />
      )}
    </Dialog>
  );
};

export const ImportDialog = ({
  errors,
  owners,
  owner,
}: {
  errors: Errors;
  owners: readonly Owner[];
  owner: string;
}) => {
  const field = { form: "import", errors };
  return (
    <Dialog
      id="import"
      title="Import memories"
      close={HOME}
      form={{ action: "/dashboard/memory/import", multipart: true }}
      foot={
        <>
          <Cancel to={HOME} />
          <Submit>
            <Icon name="upload" />
            Import
          </Submit>
        </>
      }
    >
      <p class="prose">
        JSONL as exported here, a page of this list as JSON, or a file of another program. Importing the same
        file twice changes nothing.
      </p>
      <FormErrors
        form="import"
        errors={errors}
        labels={{ file: "File", from: "Format", apiKeyId: "Owner" }}
      />
      <Field {...field} name="file" label="File">
        <input
          class="input input-file"
          id="import-file"
          type="file"
          name="file"
          accept=".jsonl,.ndjson,.json,.txt"
          required
          autofocus
          {...(errors["file"] ? { "aria-invalid": "true", "aria-describedby": "import-file-e" } : {})}
        />
      </Field>
      <div class="fields">
        <Field {...field} name="from" label="Format">
          <Select
            {...field}
            name="from"
            value="recollect"
            options={[
              { value: "recollect", text: "Recollect" },
              { value: "mem0", text: "mem0" },
              { value: "chatgpt", text: "ChatGPT export" },
              { value: "claude", text: "Claude export" },
              { value: "omniroute", text: "OmniRoute JSON" },
            ]}
          />
        </Field>
        <Field {...field} name="apiKeyId" label="Owner">
          <Select {...field} name="apiKeyId" value={owner} options={ownerOptions(owners, owner)} />
        </Field>
      </div>
    </Dialog>
  );
};

export interface ImportReport {
  file: string;
  created: number;
  updated: number;
  unchanged: number;
  refused: { line: number; message: string }[];
}

export const ImportReportView = ({ report }: { report: ImportReport }) => {
  const taken = report.created + report.updated + report.unchanged;
  return (
    <div class="report" role="status">
      <p>
        <b>
          Imported {num(taken)} of {count(taken + report.refused.length, "line")}
        </b>{" "}
        from {cut(report.file, 60)}. {num(report.created)} new, {num(report.updated)} changed,{" "}
        {num(report.unchanged)} already here.
      </p>
      {report.refused.length > 0 ? (
        <div class="table-wrap scroll-list" tabindex={0} role="region" aria-label="Lines that were refused">
          <table class="table">
            <thead>
              <tr>
                <th class="num">Line</th>
                <th>Why it was refused</th>
              </tr>
            </thead>
            <tbody>
              {report.refused.slice(0, 200).map((refused) => (
                <tr>
                  <td class="num">{num(refused.line)}</td>
                  <td>{refused.message}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </div>
  );
};

export const ImportDone = ({ report }: { report: ImportReport }) => (
  <Dialog
    id="import"
    title="Import"
    close={HOME}
    foot={
      <a class="btn btn-primary" href={HOME} autofocus>
        Show the memories
      </a>
    }
  >
    <ImportReportView report={report} />
  </Dialog>
);

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
