/** Compacting old memories: a look first, then the summaries. */
import { Cancel, Dialog, Submit } from "./actions.tsx";
import { type Errors, Field, Input, SelectField } from "./fields.tsx";
import { Ledger } from "./figures.tsx";
import { ago, count, cut, num } from "./format.ts";
import { HOME } from "./memory-dialogs.tsx";
import { type Owner, ownerOptions } from "./owners.ts";
import { Disclosure, Text } from "./parts.tsx";

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
        <SelectField
          {...field}
          name="apiKeyId"
          label="Owner"
          options={[{ value: "", text: "All keys, one by one" }, ...ownerOptions(owners, draft.apiKeyId)]}
          value={draft.apiKeyId}
          more={hx}
        />
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
