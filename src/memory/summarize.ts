/**
 * Compacting: old memories become one summary and are archived (`age`), or long ones are cut to their gist until an
 * owner's memories fit a budget (`budget`). Owner by owner, never across; nothing is destroyed: originals stay as
 * archived rows or as history, and one call puts them back.
 */
import { breathe } from "./breathe.ts";
import type { Database } from "bun:sqlite";
import { activeByKey, memoryById, toMemory } from "../db/memories.ts";
import type { MemoryRow } from "../db/memories.ts";
import { transact } from "../db/open.ts";
import { ownerId } from "../db/owners.ts";
import {
  compactable,
  compactableBefore,
  countCompactableBefore,
  originalsOf,
  ownersWithMemories,
} from "../db/summarize.ts";
import { DAY_MS, iso } from "../db/time.ts";
import { conflict, notFound } from "../error.ts";
import { sentences } from "../text/sentences.ts";
import { cutToTokens, estimateTokens } from "./budget.ts";
import type { Store } from "./store.ts";
import { limits, type Memory, type MemoryType } from "./types.ts";

export type SummarizeInput = {
  /** Null: owner by owner. */
  owner: string | null;
  mode: "age" | "budget";
  olderThanDays: number;
  maxTokens: number;
  sessionId?: string | undefined;
  dryRun: boolean;
};

export type SummarizeResult = {
  candidates: { id: string; type: MemoryType; key: string | null; tokens: number; createdAt: string }[];
  candidateCount: number;
  totalTokens: number;
  tokensSaved: number;
  archivedCount: number;
  /** The summary that was made; the newest one when it took several. */
  summaryId: string | null;
  dryRun: boolean;
};

export type SummarizeDeps = {
  db: Database;
  store: Store;
  now: () => number;
  /** A shorter wording by the model of `extractionModel`; null when none is set or it failed. */
  write?: (input: { text: string; maxTokens: number }) => Promise<string | null>;
};

/** Candidates that are named one by one. */
const NAMED = 1000;
/** Rows changed in one transaction. */
const BATCH = 100;
/** Lines of one summary; each gets its share of a memory's greatest length. */
const LINES = 250;
const LINE_TOKENS = 60;

export function createSummarizer(deps: SummarizeDeps) {
  const { db, store, now } = deps;

  async function summarize(input: SummarizeInput): Promise<SummarizeResult> {
    const result: SummarizeResult = {
      candidates: [],
      candidateCount: 0,
      totalTokens: 0,
      tokensSaved: 0,
      archivedCount: 0,
      summaryId: null,
      dryRun: input.dryRun,
    };
    const owners = input.owner === null ? ownersWithMemories(db) : [ownerId(db, input.owner) ?? -1];
    for (const owner of owners) {
      if (input.mode === "age") await byAge(owner, input, result);
      else await byBudget(owner, input, result);
    }
    return result;
  }

  /** The nightly run: what would leave retrieval tomorrow is summed up today. */
  async function nightly(retentionDays: number): Promise<void> {
    const olderThanDays = retentionDays === 0 ? 30 : Math.max(1, retentionDays - 1);
    await summarize({ owner: null, mode: "age", olderThanDays, maxTokens: 0, dryRun: false });
  }

  async function byAge(owner: number, input: SummarizeInput, result: SummarizeResult): Promise<void> {
    const before = now() - input.olderThanDays * DAY_MS;
    const of = { owner, sessionId: input.sessionId };
    const { count, tokens } = countCompactableBefore(db, of, before);
    result.candidateCount += count;
    result.totalTokens += tokens;
    name(result, compactableBefore(db, of, before, NAMED));
    if (input.dryRun) {
      const sample = compactableBefore(db, of, before, LINES);
      const lines = sample.reduce((sum, row) => sum + estimateTokens(lineOf(row, gist(row.content))), 0);
      const sampled = sample.reduce((sum, row) => sum + row.tokens, 0);
      if (sampled > 0) result.tokensSaved += Math.max(0, Math.round(tokens * (1 - lines / sampled)));
      return;
    }
    for (;;) {
      const rows = compactableBefore(db, of, before, LINES);
      if (rows.length === 0) return;
      const lines: string[] = [];
      for (let room: number = limits.content; lines.length < rows.length;) {
        const row = rows[lines.length]!;
        const line = lineOf(row, await gistOf(row));
        room -= line.length + 1;
        if (room < 0) break;
        lines.push(line);
      }
      const made = transact(db, () =>
        archiveInto(owner, input.sessionId ?? null, rows.slice(0, lines.length), lines),
      );
      if (made === null) return;
      result.summaryId = made.id;
      result.archivedCount += made.archived;
      result.tokensSaved += Math.max(0, made.saved);
      await breathe();
    }
  }

  /** One transaction: the summary, and its originals archived and linked to it. Rows that changed meanwhile are left. */
  function archiveInto(
    owner: number,
    sessionId: string | null,
    rows: readonly MemoryRow[],
    lines: readonly string[],
  ): { id: string; archived: number; saved: number } | null {
    const kept = rows.flatMap((row, at) => {
      const fresh = memoryById(db, owner, row.id);
      return fresh?.version === row.version ? [{ row: fresh, line: lines[at] ?? "" }] : [];
    });
    if (kept.length === 0) return null;
    const { row: summary } = store.put({
      ownerId: owner,
      sessionId,
      type: "semantic",
      key: null,
      content: kept.map(({ line }) => line).join("\n"),
      metadata: { category: "summary", originals: kept.length },
      origin: "summary",
    });
    for (const { row } of kept) store.setStatus(row, "archived", "summarize", summary.id);
    const before = kept.reduce((sum, { row }) => sum + row.tokens, 0);
    return { id: summary.id, archived: kept.length, saved: before - summary.tokens };
  }

  async function byBudget(owner: number, input: SummarizeInput, result: SummarizeResult): Promise<void> {
    const of = { owner, sessionId: input.sessionId };
    let room = input.maxTokens;
    for (let offset = 0; ; offset += BATCH) {
      const page = compactable(db, of, BATCH, offset);
      const changes: { row: MemoryRow; content: string }[] = [];
      for (const row of page) {
        // The newest that fit stay as they are; from the first that does not, all older ones are cut.
        if (row.tokens <= room) {
          room -= row.tokens;
          continue;
        }
        room = 0;
        const content = input.dryRun ? gist(row.content) : await gistOf(row);
        if (content.length < row.content.length) changes.push({ row, content });
      }
      for (const { row, content } of changes) {
        result.candidateCount += 1;
        result.totalTokens += row.tokens;
        result.tokensSaved += Math.max(0, row.tokens - estimateTokens(content));
      }
      name(
        result,
        changes.map(({ row }) => row),
      );
      if (!input.dryRun && changes.length > 0) {
        transact(db, () => {
          for (const { row, content } of changes) {
            const fresh = memoryById(db, owner, row.id);
            if (fresh?.version !== row.version) continue;
            // Cutting says nothing new, so it does not count as a confirmation.
            store.edit(fresh, { content, confirmed_at: fresh.confirmed_at }, "summarize");
          }
        });
      }
      if (page.length < BATCH) return;
      await breathe();
    }
  }

  /** What a memory comes down to: by the model when there is one, else its first three sentences. */
  async function gistOf(row: MemoryRow): Promise<string> {
    const plain = gist(row.content);
    if (deps.write === undefined || plain === row.content.trim()) return plain;
    const written = await deps.write({ text: row.content, maxTokens: estimateTokens(plain) });
    return written?.trim() ? cutToTokens(written.trim(), estimateTokens(plain)) : plain;
  }

  /** Puts the originals of a summary back and archives the summary. One whose key another memory holds by now is named in `held` and stays archived. */
  async function restoreOriginals(input: {
    owner: string | null;
    id: string;
  }): Promise<{ memory: Memory; restored: number; held: string[] }> {
    return transact(db, () => {
      const id = input.owner === null ? null : (ownerId(db, input.owner) ?? -1);
      const summary = memoryById(db, id, input.id);
      if (summary === null) throw notFound("memory");
      const originals = originalsOf(db, summary.owner_id, summary.id);
      if (originals.length === 0) throw conflict("This memory is no summary with originals to restore.");
      const held: string[] = [];
      let restored = 0;
      for (const row of originals) {
        if (row.key !== null && activeByKey(db, row.owner_id, row.key) !== null) held.push(row.id);
        else {
          store.setStatus(row, "active", "restore");
          restored += 1;
        }
      }
      const left = summary.status === "active" ? store.setStatus(summary, "archived", "restore") : summary;
      return { memory: toMemory(left), restored, held };
    });
  }

  return { summarize, nightly, restoreOriginals };
}

/** The first three sentences; the whole text when it has no more. */
export function gist(content: string): string {
  const [, , third, fourth] = sentences(content);
  return (third === undefined || fourth === undefined ? content : content.slice(0, third.end)).trim();
}

/** `[type] key: gist` on one line. */
function lineOf(row: MemoryRow, text: string): string {
  const head = row.key === null ? `[${row.type}] ` : `[${row.type}] ${row.key}: `;
  return head + cutToTokens(text.replace(/\s+/g, " "), LINE_TOKENS);
}

function name(result: SummarizeResult, rows: readonly MemoryRow[]): void {
  for (const row of rows.slice(0, Math.max(0, NAMED - result.candidates.length))) {
    result.candidates.push({
      id: row.id,
      type: row.type,
      key: row.key,
      tokens: row.tokens,
      createdAt: iso(row.created_at),
    });
  }
}
