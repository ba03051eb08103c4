/** Takes an exchange out of everything that keeps a copy of its text. */
import type { Database } from "bun:sqlite";
import { staleSummary, summariesOver } from "../db/summaries.ts";
import { wipeReceipts } from "../memory/delete.ts";
import type { ConversationDeps } from "./deps.ts";

/**
 * Deletes one episode inside the caller's transaction: its row and index rows, its text in receipts and injection
 * blocks, and its sentences in the summaries that cover it, which become stale. What was learned from it stays, with
 * `episodeId` null. `summaries: false` where the session's summaries go as well.
 */
export function eraseEpisode(
  deps: Pick<ConversationDeps, "db" | "hooks">,
  row: { owner: number; sessionId: number; id: number; summaries?: boolean },
): void {
  const { db, hooks } = deps;
  if (row.summaries !== false) {
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
  wipeReceipts(db, { owner_id: row.owner, id: String(row.id) }, "episode");
  db.query("DELETE FROM blocks WHERE owner_id = ? AND instr(memory_ids, ?) > 0").run(
    row.owner,
    `"episode:${row.id}"`,
  );
  hooks.removed(db, "episode", { owner: row.owner, id: row.id });
  db.query("DELETE FROM episodes WHERE id = ?").run(row.id);
}

/** What a whole session leaves beside its rows: the blocks put into its prompts, and their receipts. */
export function eraseSessionTraces(db: Database, owner: number, externalId: string): void {
  db.query("DELETE FROM blocks WHERE owner_id = ? AND session_id = ?").run(owner, externalId);
  db.query("DELETE FROM receipts WHERE owner_id = ? AND session_id = ?").run(owner, externalId);
}

/** The lines of an extractive summary that were not taken from these texts. */
function without(summary: string, texts: { user_message: string; ai_response: string }): string {
  const said = `${texts.user_message}\n${texts.ai_response}`.replace(/\s+/g, " ");
  return summary
    .split("\n")
    .filter((line) => !said.includes(line.replace(/^(?:User|Assistant): /, "").replace(/…$/, "")))
    .join("\n");
}
