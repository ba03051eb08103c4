/** Takes an exchange out of everything that keeps a copy of its text. */
import type { Database } from "bun:sqlite";
import { deleteEpisodeRows } from "../db/episodes.ts";
import { staleSummary, summariesOver } from "../db/summaries.ts";
import { wipeBlocks, wipeBlocksOfEpisodes, wipeReceipts } from "../memory/wipe.ts";
import type { ConversationDeps } from "./deps.ts";
import { withoutCode } from "./salience.ts";

/**
 * Deletes one episode inside the caller's transaction: its row and index rows, and its text wherever a copy is. What was
 * learned from it stays, with `episodeId` null.
 */
export function eraseEpisode(
  deps: Pick<ConversationDeps, "db" | "hooks">,
  row: { owner: number; sessionId: number; id: number },
): void {
  leaveSummaries(deps, row);
  wipeCopies(deps.db, row);
  deps.hooks.removed(deps.db, "episode", { owner: row.owner, id: row.id });
  deps.db.query("DELETE FROM episodes WHERE id = ?").run(row.id);
}

/** Deletes some episodes of a session whose summaries go as well. */
export function eraseEpisodes(
  { db, hooks }: Pick<ConversationDeps, "db" | "hooks">,
  owner: number,
  ids: readonly number[],
): void {
  wipeBlocksOfEpisodes(db, owner, ids);
  const recalled = db
    .query<{ ref: string }, [string]>(
      "SELECT DISTINCT ref FROM receipt_uses WHERE kind = 'episode' AND ref IN (SELECT value FROM json_each(?))",
    )
    .all(JSON.stringify(ids.map(String)));
  for (const { ref } of recalled) wipeReceipts(db, { id: ref }, "episode");
  for (const id of ids) hooks.removed(db, "episode", { owner, id });
  deleteEpisodeRows(db, ids);
}

/** As eraseEpisode, but the row stays, never to be ranked, injected or summarised again: a memory learned from it was deleted. */
export function muteEpisode(
  deps: Pick<ConversationDeps, "db" | "hooks">,
  row: { owner: number; sessionId: number; id: number },
): void {
  leaveSummaries(deps, row);
  wipeCopies(deps.db, row);
  deps.db.query("UPDATE episodes SET recall = 0 WHERE id = ?").run(row.id);
  deps.hooks.removed(deps.db, "episode", { owner: row.owner, id: row.id });
}

function wipeCopies(db: Database, row: { owner: number; id: number }): void {
  wipeReceipts(db, { id: String(row.id) }, "episode");
  wipeBlocks(db, row.owner, `"episode:${row.id}"`);
}

/** Takes the episode's sentences out of the summaries that cover it, which become stale. */
function leaveSummaries(
  { db, hooks }: Pick<ConversationDeps, "db" | "hooks">,
  row: { owner: number; sessionId: number; id: number },
): void {
  const texts = db
    .query<{ user_message: string; ai_response: string }, [number]>(
      "SELECT user_message, ai_response FROM episodes WHERE id = ?",
    )
    .get(row.id);
  for (const summary of summariesOver(db, row.sessionId, row.id)) {
    staleSummary(db, summary.id, texts === null ? summary.text : without(summary.text, texts));
    hooks.changed(db, "summary", { owner: row.owner, id: summary.id });
  }
}

/** What a whole session leaves beside its rows: the blocks put into its prompts, and their receipts. */
export function eraseSessionTraces(db: Database, owner: number, externalId: string): void {
  db.query("DELETE FROM blocks WHERE owner_id = ? AND session_id = ?").run(owner, externalId);
  db.query("DELETE FROM receipts WHERE owner_id = ? AND session_id = ?").run(owner, externalId);
}

/** The lines of an extractive summary that were not taken from these texts. */
function without(summary: string, texts: { user_message: string; ai_response: string }): string {
  // Sentences were taken from the text without its code; a summary of nothing but code is a piece of it.
  const said = [texts.user_message, texts.ai_response].flatMap((text) => [
    oneLine(text),
    oneLine(withoutCode(text)),
  ]);
  return summary
    .split("\n")
    .filter((line) => {
      const taken = oneLine(line.replace(/^(?:User|Assistant): /, "")).replace(/…$/, "");
      return !said.some((text) => text.includes(taken));
    })
    .join("\n");
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
