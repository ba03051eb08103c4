/** Many old exchanges at once, line by line: each is stored, known already, or refused with its number and a reason. */
import { insertEpisode, contentHash, sameEpisode, type NewEpisode } from "../db/episodes.ts";
import { transact } from "../db/open.ts";
import { ensureOwner } from "../db/owners.ts";
import { ensureSession, touchSession } from "../db/sessions.ts";
import { AppError } from "../error.ts";
import { estimateTokens } from "../memory/budget.ts";
import type { bulkLine } from "../schemas/conversations.ts";
import { check } from "../validate.ts";
import { nextBatch, type ConversationDeps } from "./deps.ts";
import { breathe } from "../memory/breathe.ts";

/** One piece of the file: whole lines, as `linePieces` cuts them. */
export type BulkInput = {
  owner: string;
  bytes: Uint8Array;
  /** Number of the first line of `bytes`. */
  firstLine: number;
  tooLong: readonly number[];
  /** Whether the new ones teach like a chat. */
  extract: boolean;
};

export type Refusal = { line: number; message: string };

export type BulkResult = {
  created: number;
  existing: number;
  sessions: number;
  refused: Refusal[];
  redacted: number;
};

const MAX_BATCH = 200;
const LF = 10;

type Schema = typeof bulkLine;
type Line = { line: number; episode: Omit<NewEpisode, "owner" | "sessionId"> };

export function createBulk(deps: ConversationDeps) {
  const { db, now, redact } = deps;

  /** Checks one line and takes secrets out of it. */
  function read(schema: Schema, line: number, bytes: Uint8Array, result: BulkResult): Line | null {
    try {
      const value = parse(bytes);
      if (value === undefined) return null;
      const checked = check(schema, value);
      const user = redact.text(checked.userMessage ?? "");
      const reply = redact.text(checked.aiResponse ?? "");
      const metadata = redact.json(checked.metadata ?? {});
      result.redacted += user.count + reply.count + metadata.count;
      return {
        line,
        episode: {
          externalId: checked.externalId,
          userMessage: user.text,
          aiResponse: reply.text,
          tokenCount: checked.tokenCount ?? estimateTokens(user.text) + estimateTokens(reply.text),
          metadata: metadata.value,
          importId: checked.id ?? null,
          createdAt: checked.createdAt ?? null,
        },
      };
    } catch (thrown) {
      if (!(thrown instanceof AppError)) throw thrown;
      result.refused.push({ line, message: thrown.message });
      return null;
    }
  }

  function store(owner: number, { episode }: Line, extract: boolean, at: number, result: BulkResult): void {
    const hash = contentHash(episode);
    if (sameEpisode(db, owner, episode, hash) !== null) {
      result.existing += 1;
      return;
    }
    const session = ensureSession(db, owner, episode.externalId, {}, at);
    if (session.created) result.sessions += 1;
    else touchSession(db, session.id, at);
    const id = insertEpisode(db, { ...episode, owner, sessionId: session.id }, at, hash);
    deps.hooks.changed(db, "episode", { owner, id });
    if (extract) deps.teach(db, { owner, episodeId: id });
    result.created += 1;
  }

  /** Stores the lines of one piece in short transactions, giving way to other calls in between. */
  return async function bulk(input: BulkInput): Promise<BulkResult> {
    const { bulkLine: schema } = await import("../schemas/conversations.ts");
    const result: BulkResult = { created: 0, existing: 0, sessions: 0, refused: [], redacted: 0 };
    for (const line of input.tooLong) result.refused.push({ line, message: "The line is too long." });
    const owner = transact(db, () => ensureOwner(db, input.owner));
    let size = 10;
    let at = 0;
    for (let number = input.firstLine; at < input.bytes.length;) {
      const started = performance.now();
      deps.hold();
      const lines: Line[] = [];
      for (let seen = 0; seen < size && at < input.bytes.length; seen += 1, number += 1) {
        const end = input.bytes.indexOf(LF, at);
        const stop = end < 0 ? input.bytes.length : end;
        const line = read(schema, number, input.bytes.subarray(at, stop), result);
        if (line !== null) lines.push(line);
        at = stop + 1;
      }
      if (lines.length > 0) {
        transact(db, () => {
          const time = now();
          for (const line of lines) store(owner, line, input.extract, time, result);
        });
      }
      size = nextBatch(size, performance.now() - started, MAX_BATCH);
      await breathe();
    }
    return result;
  };
}

/** The JSON value of a line; undefined when it is blank. */
function parse(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes).trim();
  } catch {
    throw new AppError("invalid_json", "The line is not valid UTF-8.");
  }
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new AppError("invalid_json", "The line is not valid JSON.");
  }
}
