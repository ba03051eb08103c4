/** From ids to what is shown and injected: loads the rows of candidates and makes their lines. */
import type { Database } from "bun:sqlite";
import { entitiesByIds } from "../db/entities.ts";
import { episodesByIds } from "../db/episodes.ts";
import { contentTimes, memoriesBySeqs, toMemory } from "../db/memories.ts";
import { linksOf, linkText } from "../db/relationships.ts";
import { summariesByIds } from "../db/summaries.ts";
import type { PastTexts } from "../search/past.ts";
import { excerpt } from "../search/excerpt.ts";
import type { QueryTerm } from "../search/tokens.ts";
import type { Candidate } from "../search/types.ts";
import { renderLine } from "./block.ts";
import { estimateTokens } from "./budget.ts";
import type { Retrieved } from "./types.ts";

/** Relationships shown with an entity. */
const LINKS = 10;

/**
 * A candidate with its row. `seq` is the number of a memory's row, for access counters; `at` (ms) is when it was said or
 * learned: of a memory whose content was replaced, when it got the one it has.
 */
export type Loaded = Retrieved & { seq: number; ownerId: number; at: number };

/** Rows of these candidates, in their order; those that are gone meanwhile are left out. Long exchanges are cut to what fits the question. */
export function loadRows(
  db: Database,
  owner: { id: number; name: string },
  candidates: readonly Candidate[],
  options: { terms: readonly QueryTerm[]; maxLine: number; past?: PastTexts },
): Loaded[] {
  const ids = (kind: Candidate["kind"]) => candidates.filter((c) => c.kind === kind).map((c) => c.id);
  const memories = memoriesBySeqs(db, owner.id, ids("memory"));
  const episodes = episodesByIds(db, owner.id, ids("episode"));
  const entities = entitiesByIds(db, owner.id, ids("entity"));
  const summaries = summariesByIds(db, owner.id, ids("summary"));
  const replaced = contentTimes(
    db,
    "seq",
    [...memories.values()].filter(({ version }) => version > 1).map(({ seq }) => seq),
  );
  const links = entities.size > 0 ? linksOf(db, [...entities.keys()], LINKS) : new Map<number, never[]>();
  const cut = (text: string, most = options.maxLine) => excerpt(text, options.terms, most);
  return candidates.flatMap((candidate): Loaded[] => {
    const { kind, id } = candidate;
    const { score, tier, ftsRank, ftsScore, vecRank, vecScore } = candidate;
    const common = {
      score,
      tier,
      ftsRank,
      ftsScore,
      vecRank,
      vecScore,
      owner: owner.name,
      ownerId: owner.id,
      seq: id,
    };
    switch (kind) {
      case "memory": {
        const now = memories.get(id);
        if (!now) return [];
        const row = { ...now, ...options.past?.get(id) };
        const at = options.past?.has(id) ? row.created_at : (replaced.get(id) ?? row.created_at);
        const text = renderLine({ kind, content: row.content, origin: row.origin, at });
        const item = toMemory(row);
        return [{ ...common, at, kind, id: row.id, item, text, tokens: estimateTokens(text) }];
      }
      case "episode": {
        const item = episodes.get(id);
        if (!item) return [];
        // What the person said comes first; the reply gets the room that is left.
        const userMessage = cut(item.userMessage);
        const left = Math.max(options.maxLine / 4, options.maxLine - estimateTokens(userMessage));
        const aiResponse = cut(item.aiResponse, left);
        const at = Date.parse(item.createdAt);
        const text = renderLine({ kind, userMessage, aiResponse, at });
        return [{ ...common, at, kind, id: String(id), item, text, tokens: estimateTokens(text) }];
      }
      case "entity": {
        const entity = entities.get(id);
        if (!entity) return [];
        const relationships = links.get(id) ?? [];
        const at = Date.parse(entity.createdAt);
        const text = renderLine({
          kind,
          name: entity.name,
          type: entity.type,
          notes: entity.notes === null ? null : cut(entity.notes),
          links: relationships.map((link) => linkText(link, id)),
          at,
        });
        return [
          {
            ...common,
            at,
            kind,
            id: String(id),
            item: { ...entity, relationships },
            text,
            tokens: estimateTokens(text),
          },
        ];
      }
      case "summary": {
        const item = summaries.get(id);
        if (!item) return [];
        const at = Date.parse(item.createdAt);
        const text = renderLine({ kind, text: cut(item.text), at });
        return [{ ...common, at, kind, id: String(id), item, text, tokens: estimateTokens(text) }];
      }
    }
  });
}
