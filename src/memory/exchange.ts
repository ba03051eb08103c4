/**
 * The engine's half of a chat: finds the session, the blocks to put back and what is relevant before the request, and
 * writes what became of it after the reply.
 */
import { insertUsage, type UsageRow } from "../db/usage.ts";
import { createDrafts } from "./exchange-draft.ts";
import { createPrepare, type PrepareDeps } from "./exchange-prepare.ts";
import { createRecord, type RecordDeps } from "./exchange-record.ts";

export function createExchanges(deps: PrepareDeps & RecordDeps) {
  const drafts = createDrafts(deps.now);
  return {
    prepare: createPrepare(deps, drafts),
    record: createRecord(deps, drafts),
    /** For requests that leave nothing else. */
    async addUsage(input: { rows: UsageRow[] }): Promise<void> {
      insertUsage(deps.db, input.rows);
    },
  };
}
