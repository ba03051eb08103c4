/** The job `extract`: what an exchange teaches, applied to what is known, in one transaction. */
import { getEpisode, saidBefore } from "../db/episodes.ts";
import type { NewJob } from "../db/jobs.ts";
import { transact } from "../db/open.ts";
import type { ExchangeExtraction } from "../extract/types.ts";
import type { ModelAnswer, Turn } from "../extract/model.ts";
import { isPlaying } from "../extract/play.ts";
import { lower } from "../text/fold.ts";
import { applyExchange, type ApplyDeps } from "./apply-exchange.ts";
import { addTurn, batchName, dropTurns, QUIET_MS, readBatch } from "./batch.ts";
import type { JobHandler } from "./jobs.ts";
import type { MemorySettings } from "./settings.ts";

/** What the recording transaction queues. The texts are in the job only when no episode is kept. */
export type ExtractPayload = {
  episodeId: number | null;
  /** External id of the session. */
  sessionId: string | null;
  user?: string;
  assistant?: string;
  /** When it was said (ms): what was deleted for good later than this is not learned again. */
  saidAt: number;
  /** Ids of the memories that were injected into this exchange. */
  injected: string[];
  receiptId: string | null;
};

export type LearnDeps = ApplyDeps & {
  settings: () => MemorySettings;
  /** Statements of an exchange, by patterns. */
  extract: (exchange: Turn) => ExchangeExtraction;
  /** Statements of turns by the model of the setting `extractionModel`; null when it gave none that can be used. */
  ask: (turns: readonly Turn[]) => Promise<ModelAnswer | null>;
  /** Queues a job inside the caller's transaction. */
  queue: (job: NewJob) => void;
  /** What else an exchange leaves (entities), inside the same transaction. */
  alsoFrom?: (exchange: Turn & { ownerId: number; episodeId: number; model: ModelAnswer | null }) => void;
};

/** Messages of a conversation that are looked at for what goes on in it. */
const LOOKED_BACK = 40;

export function createLearning(deps: LearnDeps): { handler: JobHandler; batchHandler: JobHandler } {
  const { db, now } = deps;
  /** Batches that a model is reading now. */
  const reading = new Set<string>();

  /** The job `extract`: one exchange. With a model that reads several at once, it waits in its session's batch. */
  const handler: JobHandler = async (job, run) => {
    const payload = job.payload as ExtractPayload;
    const ownerId = job.ownerId!;
    const settings = deps.settings();
    // The exchange was deleted, or memory was turned off, while the job waited.
    if (!textsOf(payload) || !settings.enabled || settings.extractFrom === "off") return;
    if (settings.extractionModel === null) return apply(ownerId, [payload], null, () => run.done());
    if (settings.extractEveryTurns === 1) {
      return apply(ownerId, [payload], await ask([payload]), () => run.done());
    }
    const name = batchName(ownerId, payload.sessionId);
    transact(db, () => {
      const next = addTurn(db, name, payload, now());
      run.done();
      const full = next.turns.length >= settings.extractEveryTurns;
      deps.queue({
        type: "extract-batch",
        // Not bound to the order of the owner's jobs: a quiet session must not hold up a lively one.
        ownerId: null,
        payload: { ownerId, sessionId: payload.sessionId },
        runAt: full ? now() : next.lastAt + QUIET_MS,
        dedupe: full ? `${name}:full` : name,
      });
    });
  };

  /** The job `extract-batch`: reads a session's batch when it is full or the session was quiet; else a later job will. */
  const batchHandler: JobHandler = async (job, run) => {
    const { ownerId, sessionId } = job.payload as { ownerId: number; sessionId: string | null };
    const settings = deps.settings();
    const name = batchName(ownerId, sessionId);
    const { turns, lastAt } = readBatch<ExtractPayload>(db, name);
    const full = turns.length >= settings.extractEveryTurns;
    // A turn of tomorrow: the clock has been put back since.
    const due = full || reading.has(name) || lastAt > now() ? now() : lastAt + QUIET_MS;
    if (turns.length === 0) return;
    if (due > now() || reading.has(name)) {
      transact(db, () => {
        run.done();
        deps.queue({
          type: "extract-batch",
          ownerId: null,
          payload: job.payload,
          runAt: Math.max(due, now() + 1000),
          dedupe: name,
        });
      });
      return;
    }
    reading.add(name);
    try {
      const answer = settings.extractionModel === null ? null : await ask(turns);
      apply(ownerId, turns, answer, () => {
        dropTurns(db, name, turns.length);
        run.done();
      });
    } finally {
      reading.delete(name);
    }
  };

  async function ask(payloads: readonly ExtractPayload[]): Promise<ModelAnswer | null> {
    return deps.ask(payloads.map(textsOf).filter((texts) => texts !== null));
  }

  /** Stores what the exchanges teach and calls `done`, in one transaction. Without an answer of a model patterns read. */
  function apply(
    ownerId: number,
    payloads: readonly ExtractPayload[],
    answer: ModelAnswer | null,
    done: () => void,
  ): void {
    const settings = deps.settings();
    transact(db, () => {
      const turns = payloads.map((payload) => ({ payload, texts: textsOf(payload) }));
      const shares =
        answer === null
          ? null
          : shareOut(
              answer,
              turns.map(({ texts }) => texts),
              settings.extractFrom,
            );
      turns.forEach(({ payload, texts }, at) => {
        // The model reads what was said before; patterns see one message.
        if (!texts || (answer === null && inPlay(payload, texts))) return;
        const found = shares?.[at] ?? deps.extract(texts);
        const learned = applyExchange(deps, ownerId, payload, settings, found);
        if (payload.episodeId !== null) {
          // What a model names is stored once, with the last exchange that it read.
          const model = at === turns.length - 1 ? answer : null;
          if (answer === null || model)
            deps.alsoFrom?.({ ownerId, episodeId: payload.episodeId, ...texts, model });
        }
        if (payload.receiptId !== null && learned.length > 0) {
          db.query("UPDATE receipts SET learned = ? WHERE id = ?").run(
            JSON.stringify(learned),
            payload.receiptId,
          );
        }
      });
      done();
    });
  }

  /** Whether a part is played in this exchange that an earlier one of its conversation began. */
  function inPlay({ episodeId, saidAt }: ExtractPayload, { user }: Turn): boolean {
    if (episodeId === null) return false;
    return isPlaying(saidBefore(db, episodeId, LOOKED_BACK), { text: user, at: saidAt });
  }

  function textsOf(payload: ExtractPayload): Turn | null {
    if (payload.episodeId === null) return { user: payload.user ?? "", assistant: payload.assistant ?? "" };
    const episode = getEpisode(db, null, payload.episodeId);
    if (!episode) return null;
    // The partial reply of a stream that was cut off teaches nothing.
    return { user: episode.userMessage, assistant: episode.complete ? episode.aiResponse : "" };
  }

  return { handler, batchHandler };
}

/** Gives each statement of a model's answer to the exchange that it was read from: the last one with its words. */
function shareOut(
  answer: ModelAnswer,
  turns: readonly (Turn | null)[],
  from: MemorySettings["extractFrom"],
): ExchangeExtraction[] {
  const shares = turns.map((): ExchangeExtraction => ({
    facts: [],
    ends: [],
    forgets: [],
    rejected: { retracted: 0, overruled: 0, capped: 0 },
  }));
  const home = (words: string, role: "user" | "assistant"): ExchangeExtraction => {
    const at = turns.findLastIndex((turn) => turn !== null && lower(turn[role]).includes(lower(words)));
    return shares[at === -1 ? shares.length - 1 : at]!;
  };
  const facts = answer.facts.filter((fact) => from === "both" || fact.origin === "user");
  for (const fact of facts) home(fact.value, fact.origin).facts.push(fact);
  for (const forget of answer.forgets) home(forget.phrase, "user").forgets.push(forget);
  shares.at(-1)!.rejected = answer.rejected;
  return shares;
}
