/** Export as JSON lines, page by page: a head line, then every row with its kind, in an order that import can read in one pass. */
import type { Database } from "bun:sqlite";
import {
  entitiesAfter,
  episodesAfter,
  linksFrom,
  memoriesAfterSeq,
  sessionsAfter,
  summariesAfter,
  versionsOfAll,
  type Span,
} from "../db/export.ts";
import { toMemory, toVersion } from "../db/memories.ts";
import { ownerId } from "../db/owners.ts";
import { iso, isoOrNull } from "../db/time.ts";
import { invalid } from "../error.ts";

export const FORMAT = "recollect/1";

export type ExportInput = {
  /** Null: every owner (management). */
  owner: string | null;
  memoriesOnly: boolean;
  /** What the page before gave; null for the first one. */
  cursor: string | null;
};

/** `text` is whole lines, each with its line end; `cursor` is null after the last page. */
export type ExportPage = { text: string; cursor: string | null };

const stages = ["session", "episode", "memory", "entity", "relationship", "summary"] as const;
type Stage = (typeof stages)[number];

/** Rows a page: an exchange may be long, the others are short and many. */
const ROWS: Record<Stage, number> = {
  session: 1000,
  episode: 100,
  memory: 500,
  entity: 1000,
  relationship: 1000,
  summary: 1000,
};
/** A person whose owner has no row yet has nothing. */
const NOBODY = -1;

type Taken = { lines: object[]; last: number | null };

export function createExport(db: Database) {
  async function exportPage(input: ExportInput): Promise<ExportPage> {
    const owner = input.owner === null ? null : (ownerId(db, input.owner) ?? NOBODY);
    const wanted: readonly Stage[] = input.memoriesOnly ? ["memory"] : stages;
    if (input.cursor === null) {
      return { text: `${JSON.stringify({ format: FORMAT })}\n`, cursor: `${wanted[0]}:0` };
    }
    const [stage, after] = readCursor(input.cursor, wanted);
    const taken = takers[stage]({ owner, after, limit: ROWS[stage] });
    const text = taken.lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    if (taken.last !== null) return { text, cursor: `${stage}:${taken.last}` };
    const next = wanted[wanted.indexOf(stage) + 1];
    return { text, cursor: next === undefined ? null : `${next}:0` };
  }

  const takers: Record<Stage, (span: Span) => Taken> = {
    session: (span) =>
      lines(sessionsAfter(db, span), (row) => [
        {
          kind: "session",
          id: row.id,
          apiKeyId: row.owner,
          externalId: row.external_id,
          metadata: parsed(row.metadata),
          pinned: row.pinned === 1,
          createdAt: iso(row.created_at),
          updatedAt: iso(row.updated_at),
        },
      ]),
    episode: (span) =>
      lines(episodesAfter(db, span), (row) => [
        {
          kind: "episode",
          id: row.id,
          apiKeyId: row.owner,
          externalId: row.external_id,
          userMessage: row.user_message,
          aiResponse: row.ai_response,
          tokenCount: row.token_count,
          metadata: parsed(row.metadata),
          complete: row.complete === 1,
          recall: row.recall === 1,
          importId: row.import_id,
          createdAt: iso(row.created_at),
        },
      ]),
    memory(span) {
      const rows = memoriesAfterSeq(db, span);
      const versions = versionsOfAll(
        db,
        rows.map((row) => row.seq),
      );
      return lines(
        rows.map((row) => ({ ...row, number: row.seq })),
        (row) => [
          { kind: "memory", ...toMemory(row), byHand: row.by_hand === 1 },
          ...(versions.get(row.seq) ?? []).map((version) => ({
            kind: "version",
            memoryId: row.id,
            ...toVersion(version),
            since: iso(version.since),
            sessionId: version.session_id,
            expiresAt: isoOrNull(version.expires_at),
            status: version.status,
            episodeId: version.episode_id,
          })),
        ],
      );
    },
    entity: (span) =>
      lines(entitiesAfter(db, span), (row) => [
        {
          kind: "entity",
          id: row.id,
          apiKeyId: row.owner,
          name: row.name,
          type: row.type,
          notes: row.notes,
          metadata: parsed(row.metadata),
          createdAt: iso(row.created_at),
          updatedAt: iso(row.updated_at),
        },
      ]),
    relationship(span) {
      const ids = entitiesAfter(db, span).map((row) => row.id);
      return {
        lines: linksFrom(db, ids).map((row) => ({
          kind: "relationship",
          fromId: row.from_id,
          toId: row.to_id,
          label: row.label,
          metadata: parsed(row.metadata),
          createdAt: iso(row.created_at),
        })),
        last: ids.at(-1) ?? null,
      };
    },
    summary: (span) =>
      lines(summariesAfter(db, span), (row) => [
        {
          kind: "summary",
          id: row.id,
          apiKeyId: row.owner,
          externalId: row.external_id,
          text: row.text,
          firstEpisodeId: row.first_episode_id,
          lastEpisodeId: row.last_episode_id,
          stale: row.stale === 1,
          automatic: row.automatic === 1,
          createdAt: iso(row.created_at),
        },
      ]),
  };

  return { exportPage };
}

function lines<Row extends { id: number } | { number: number }>(
  rows: Row[],
  write: (row: Row) => object[],
): Taken {
  const last = rows.at(-1);
  return {
    lines: rows.flatMap(write),
    last: last === undefined ? null : "number" in last ? last.number : last.id,
  };
}

function parsed(json: string): unknown {
  return JSON.parse(json);
}

function readCursor(cursor: string, wanted: readonly Stage[]): [Stage, number] {
  const [name, number] = cursor.split(":");
  const stage = wanted.find((one) => one === name);
  const after = Number(number);
  if (stage === undefined || !Number.isSafeInteger(after)) throw invalid("cursor", "is not one of ours");
  return [stage, after];
}
