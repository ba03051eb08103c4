/**
 * Whether memory works, by doing it: a statement is read out of a sentence, stored, found by its words and by its vector,
 * and deleted again. Under an owner of its own, never a real one; what a crash left behind goes with the next run.
 */
import type { Database } from "bun:sqlite";
import { transact } from "../db/open.ts";
import { ensureOwner, ownerId } from "../db/owners.ts";
import { iso } from "../db/time.ts";
import { memoriesAfterSeq } from "../db/export.ts";
import { extractFacts } from "../extract/facts.ts";
import type { Log } from "../log.ts";
import type { Store } from "./store.ts";
import type { RetrieveInput, RetrieveResult } from "./types.ts";

/** No API key can have this id. */
export const VERIFY_OWNER = "~verify";

export type Health = { working: boolean; latencyMs: number; error?: string; checkedAt: string };

export type VerifyDeps = {
  db: Database;
  store: Store;
  log: Log;
  now: () => number;
  retrieve: (input: RetrieveInput) => Promise<RetrieveResult>;
  /** Whether a new row gets its vector at once: there is a model, and no backlog before it. Else the words alone are tried. */
  embeds: () => Promise<boolean>;
};

/** A result is good for this long. */
const FRESH_MS = 10_000;
/** How long the vector of the new memory may take. */
const VECTOR_MS = 5000;

export function createVerifier(deps: VerifyDeps) {
  const { db, store, now } = deps;
  let last: Health | null = null;
  let running: Promise<Health> | null = null;

  /** Runs the round trip, or gives the result of the last one within 10 s. Never throws. */
  async function health(): Promise<Health> {
    if (last !== null && now() - Date.parse(last.checkedAt) < FRESH_MS) return last;
    running ??= verify().finally(() => (running = null));
    return running;
  }

  async function verify(): Promise<Health> {
    const started = performance.now();
    let error: string | null;
    try {
      error = await roundTrip();
    } catch (thrown) {
      deps.log.error("memory.verify.failed", { error: thrown });
      error = "The round trip failed; the log says why.";
    } finally {
      cleanUp();
    }
    const latencyMs = Math.round((performance.now() - started) * 10) / 10;
    last = {
      working: error === null,
      latencyMs,
      ...(error === null ? {} : { error }),
      checkedAt: iso(now()),
    };
    return last;
  }

  /** Null when all went well, else one sentence. */
  async function roundTrip(): Promise<string | null> {
    cleanUp();
    const word = `verify${crypto.randomUUID().replaceAll("-", "").slice(0, 12)}`;
    const [fact] = extractFacts(`I prefer ${word} for writing letters.`, "user").facts;
    if (fact === undefined || !fact.content.includes(word))
      return "No statement was read out of a plain sentence.";
    const embeds = await deps.embeds();
    const stored = transact(db, () =>
      store.put({
        ownerId: ensureOwner(db, VERIFY_OWNER),
        type: fact.type,
        key: fact.key,
        content: fact.content,
        metadata: {},
        origin: "user",
      }),
    );
    const found = async (strategy: "hybrid" | "semantic") => {
      const answer = await deps.retrieve({
        owner: VERIFY_OWNER,
        query: word,
        scope: "apiKey",
        strategy,
        maxTokens: 500,
        limit: 5,
        kinds: ["memory"],
        mode: "interactive",
        count: false,
      });
      return answer.results.find((one) => one.id === stored.row.id);
    };
    if (((await found("hybrid"))?.ftsRank ?? null) === null)
      return "A new memory was not found by its words.";
    if (embeds) {
      const end = performance.now() + VECTOR_MS;
      for (;;) {
        if (((await found("semantic"))?.vecRank ?? null) !== null) break;
        if (performance.now() > end) return "A new memory was not found by its vector.";
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
    }
    cleanUp();
    if ((await found("hybrid")) !== undefined) return "A deleted memory was still found.";
    return null;
  }

  /** Deletes whatever the reserved owner has. */
  function cleanUp(): void {
    const owner = ownerId(db, VERIFY_OWNER);
    if (owner === null) return;
    transact(db, () => {
      for (const row of memoriesAfterSeq(db, { owner, after: 0, limit: 1000 })) store.purge(row);
      db.query("DELETE FROM tombstones WHERE owner_id = ?").run(owner);
    });
  }

  return { health, cleanUp };
}
