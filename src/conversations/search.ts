/** Search over exchanges and entities: the channels and fusion of retrieval, without floor, budget or collapsing. */
import type { Database } from "bun:sqlite";
import { entitiesByIds } from "../db/entities.ts";
import { episodesByIds } from "../db/episodes.ts";
import { ownerId } from "../db/owners.ts";
import { getSession, sessionIdOf } from "../db/sessions.ts";
import { notFound } from "../error.ts";
import type { Entity, Episode, Resolution } from "../memory/types.ts";
import type { Candidate } from "../search/types.ts";

/** Channels that a search may use: words, vectors (words when there are none), or both. */
export type SearchMode = "keyword" | "semantic" | "hybrid";

/** Ranks rows of one kind, best first. */
export type Rank = (input: {
  owner: number;
  kind: "episode" | "entity";
  query: string;
  limit: number;
  mode: SearchMode;
  /** External id of the session to stay in, or null. */
  session: string | null;
}) => Promise<{ candidates: readonly Candidate[]; resolution: Resolution }>;

export type Found<Row> = Row &
  Pick<Candidate, "score" | "tier" | "ftsRank" | "ftsScore" | "vecRank" | "vecScore">;
export type SearchResult<Row> = { data: Found<Row>[]; total: number; resolution: Resolution };

export function createSearch({ db, rank }: { db: Database; rank: Rank }) {
  /** `sessionId` or `externalId` keeps to one session, which must be the owner's. `total` counts what was ranked. */
  async function searchEpisodes(input: {
    owner: string;
    query: string;
    limit: number;
    mode: SearchMode;
    sessionId?: number | undefined;
    externalId?: string | undefined;
  }): Promise<SearchResult<Episode>> {
    const owner = ownerId(db, input.owner) ?? -1;
    const session = sessionOf(owner, input);
    const { query, limit, mode } = input;
    const { candidates: ranked, resolution } = await rank({
      owner,
      kind: "episode",
      query,
      limit,
      mode,
      session,
    });
    // Ranking also brings the turns beside a match; who asks for keywords wants what holds them.
    const candidates = mode === "keyword" ? ranked.filter((one) => one.ftsRank !== null) : ranked;
    const best = candidates.slice(0, limit);
    const rows = episodesByIds(
      db,
      owner,
      best.map((one) => one.id),
    );
    return { data: joined(best, rows), total: candidates.length, resolution };
  }

  function sessionOf(
    owner: number,
    input: { sessionId?: number | undefined; externalId?: string | undefined },
  ): string | null {
    if (input.sessionId === undefined && input.externalId === undefined) return null;
    const id = input.sessionId ?? sessionIdOf(db, owner, input.externalId ?? "");
    const session = id === null ? null : getSession(db, owner, id);
    const named = input.externalId ?? session?.externalId;
    if (session === null || session.externalId !== named) throw notFound("session");
    return session.externalId;
  }

  async function searchEntities(input: {
    owner: string;
    query: string;
    limit: number;
  }): Promise<SearchResult<Entity>> {
    const owner = ownerId(db, input.owner) ?? -1;
    const { query, limit } = input;
    const { candidates, resolution } = await rank({
      owner,
      kind: "entity",
      query,
      limit,
      mode: "hybrid",
      session: null,
    });
    const best = candidates.slice(0, limit);
    const rows = entitiesByIds(
      db,
      owner,
      best.map((one) => one.id),
    );
    return { data: joined(best, rows), total: candidates.length, resolution };
  }

  return { searchEpisodes, searchEntities };
}

/** The rows in the order of their candidates, with what ranked them; one deleted meanwhile is left out. */
function joined<Row extends object>(candidates: readonly Candidate[], rows: Map<number, Row>): Found<Row>[] {
  return candidates.flatMap(({ id, score, tier, ftsRank, ftsScore, vecRank, vecScore }) => {
    const row = rows.get(id);
    return row === undefined ? [] : [{ ...row, score, tier, ftsRank, ftsScore, vecRank, vecScore }];
  });
}
