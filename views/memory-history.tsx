/** What a memory said before, with what changed marked. */
import type { Memory, MemoryVersion } from "../src/memory/types.ts";
import { Post } from "./actions.tsx";
import { dayTime, memoryHref } from "./format.ts";
import { Icon } from "./icons.tsx";
import { Text, voice, When } from "./parts.tsx";

/** The longest common beginning and end of two texts, by words, so that only what changed is marked. */
export function wordDiff(
  before: string,
  after: string,
): { head: string; del: string; ins: string; tail: string } {
  const words = (text: string) => text.split(/(?<=\s)/u);
  const a = words(before);
  const b = words(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  return {
    head: a.slice(0, start).join(""),
    del: a.slice(start, a.length - end).join(""),
    ins: b.slice(start, b.length - end).join(""),
    tail: end ? b.slice(-end).join("") : "",
  };
}

const Changed = ({ before, after }: { before: string; after: string }) => {
  const { head, del, ins, tail } = wordDiff(before, after);
  return (
    <>
      <Text text={head} />
      {del ? (
        <del>
          <Text text={del.trimEnd()} />
        </del>
      ) : null}
      {del && ins ? " " : ""}
      {ins ? (
        <ins>
          <Text text={ins.trimEnd()} />
        </ins>
      ) : null}
      {tail ? (
        <>
          {del || ins ? " " : ""}
          <Text text={tail} />
        </>
      ) : null}
    </>
  );
};

const causes: Record<string, string> = {
  current: "Now",
  create: "Learned",
  upsert: "Said again with other words",
  edit: "Edited",
  update: "Edited",
  restore: "Restored from the history",
  archive: "Archived",
  unarchive: "Brought back",
  supersede: "A correction in conversation",
  summarize: "Compacted",
  approve: "Approved",
  correction: "A correction in conversation",
  import: "Imported",
  forget: "Asked to be forgotten",
};

const causeWords = (cause: string): string => causes[cause] ?? cause[0]!.toUpperCase() + cause.slice(1);

export const History = ({ memory, versions }: { memory: Memory; versions: readonly MemoryVersion[] }) => {
  const newest = [...versions].sort((a, b) => b.version - a.version);
  return (
    <ol class="panel history">
      {newest.map((version, i) => {
        const before = newest[i + 1];
        return (
          <li {...(i === 0 ? { class: "is-current" } : {})}>
            <p {...voice(version.content)}>
              {before && before.content !== version.content ? (
                <Changed before={before.content} after={version.content} />
              ) : (
                <Text text={version.content} />
              )}
            </p>
            <p class="history-meta">
              {i === 0 ? "Now. " : ""}
              {before ? causeWords(before.cause) : "As it was first kept"},{" "}
              <When at={before?.at ?? memory.createdAt}>{dayTime(before?.at ?? memory.createdAt)}</When>
            </p>
            {i === 0 ? null : (
              <Post action={memoryHref(memory.id, "restore")}>
                <button
                  class="btn btn-sm"
                  name="version"
                  value={String(version.version)}
                  aria-label={`Restore version ${version.version}`}
                >
                  <Icon name="undo" />
                  Restore
                </button>
              </Post>
            )}
          </li>
        );
      })}
    </ol>
  );
};
