/** What a point of a memory holds, and the filters that every query carries. */
import type { Memory } from "../../memory/types.ts";
import type { QdrantCondition, QdrantFilter } from "./client.ts";
import type { Shape } from "./collections.ts";

/** `kind` of memory points; the seed's word, so that its collections can be read. */
export const MEMORY_KIND = "omniroute_memory";

/** Fields that filters use. */
export const memoryIndexes: Shape["indexes"] = {
  apiKeyId: "tenant",
  sessionId: "keyword",
  kind: "keyword",
  boxId: "keyword",
  confirmedAtUnix: "integer",
  expiresAtUnix: "integer",
  pinned: "bool",
};

/** The same for exchanges, entities and summaries. */
export const recordIndexes: Shape["indexes"] = {
  apiKeyId: "tenant",
  sessionId: "keyword",
  kind: "keyword",
  boxId: "keyword",
};

/** Whole seconds UTC of an ISO time. */
export const unix = (iso: string): number => Math.floor(Date.parse(iso) / 1000);

/** A point's payload: what can be filtered, shown and compared. `boxId` tells apart appliances that share a server. */
export function memoryPayload(memory: Memory, boxId: string): Record<string, unknown> {
  return {
    kind: MEMORY_KIND,
    memoryId: memory.id,
    apiKeyId: memory.apiKeyId,
    sessionId: memory.sessionId,
    type: memory.type,
    key: memory.key,
    content: memory.content,
    metadata: memory.metadata,
    createdAtUnix: unix(memory.createdAt),
    confirmedAtUnix: unix(memory.confirmedAt),
    expiresAtUnix: memory.expiresAt === null ? null : unix(memory.expiresAt),
    pinned: memory.pinned,
    boxId,
  };
}

export type Scope = {
  /** The owner's name. */
  owner: string;
  /** Rows of this session and rows without one; null: all. */
  session: string | null;
  /** 0 keeps for ever. */
  retentionDays: number;
  /** Milliseconds UTC. */
  now: number;
};

const match = (key: string, value: string | boolean): QdrantCondition => ({ key, match: { value } });
const present = (...all: (QdrantCondition | null)[]): QdrantCondition[] => all.filter((one) => one !== null);

/** The base predicate as a filter: kind, owner, session, expiry, retention (from which pinned ones are exempt). */
export function baseFilter(kind: string, scope: Scope): QdrantFilter {
  const { owner, session, retentionDays, now } = scope;
  return {
    must: present(
      match("kind", kind),
      match("apiKeyId", owner),
      session === null
        ? null
        : { should: [{ key: "sessionId", match: { value: session } }, { is_empty: { key: "sessionId" } }] },
      {
        should: [{ is_empty: { key: "expiresAtUnix" } }, { key: "expiresAtUnix", range: { gt: now / 1000 } }],
      },
      retentionDays === 0
        ? null
        : {
            should: [
              { key: "pinned", match: { value: true } },
              { key: "confirmedAtUnix", range: { gte: cutoff(retentionDays, now) } },
            ],
          },
    ),
  };
}

/** The predicate of rows that only this box has. What else it asks of them is checked on the rows. */
export function recordFilter(
  kind: string,
  boxId: string,
  scope: Pick<Scope, "owner" | "session">,
): QdrantFilter {
  return {
    must: present(
      match("kind", kind),
      match("apiKeyId", scope.owner),
      match("boxId", boxId),
      scope.session === null ? null : match("sessionId", scope.session),
    ),
  };
}

/** Points that no search gives any more: expired, or past retention and not pinned. */
export function outdatedFilter(
  kind: string,
  boxId: string,
  retentionDays: number,
  now: number,
): QdrantFilter {
  return {
    must: present(match("kind", kind), ownBox(boxId), {
      should: present(
        { key: "expiresAtUnix", range: { lte: now / 1000 } },
        retentionDays === 0
          ? null
          : {
              must: [{ key: "confirmedAtUnix", range: { lt: cutoff(retentionDays, now) } }],
              must_not: [{ key: "pinned", match: { value: true } }],
            },
      ),
    }),
  };
}

/** Points of this box, and those of programs that write no box. */
export function ownBox(boxId: string): QdrantFilter {
  return { should: [{ key: "boxId", match: { value: boxId } }, { is_empty: { key: "boxId" } }] };
}

export function ownPoints(kind: string, boxId: string): QdrantFilter {
  return { must: present(match("kind", kind), ownBox(boxId)) };
}

const cutoff = (days: number, now: number): number => Math.floor(now / 1000) - days * 86_400;
