/** Sessions, episodes, entities, relationships and summaries, as an import brings them. */
import { putEntity } from "../conversations/entities.ts";
import { mergeMetadata } from "../conversations/deps.ts";
import { contentHash, insertEpisode, sameEpisode, sameTexts } from "../db/episodes.ts";
import { SOURCES } from "../conversations/learn.ts";
import { entityByName, getEntity } from "../db/entities.ts";
import { getRelationship, putRelationship } from "../db/relationships.ts";
import { ensureSession, getSession, patchSession } from "../db/sessions.ts";
import { insertSummary, sameSummary, staleSummary } from "../db/summaries.ts";
import { ms } from "../db/time.ts";
import { invalid } from "../error.ts";
import { estimateTokens } from "../memory/budget.ts";
import { cleanMetadata } from "../memory/fields.ts";
import type { JsonObject } from "../memory/types.ts";
import type { LineOf } from "../schemas/import.ts";
import type { Import, ImportDeps, Outcome } from "./import.ts";

type Report = (count: number) => void;

export function createConversationWriter(deps: ImportDeps) {
  const { db, hooks, redact, now } = deps;

  function clean(line: { metadata?: LineOf<"session">["metadata"] }, redacted: Report) {
    const { value, count } = cleanMetadata(line.metadata ?? {}, redact);
    redacted(count);
    return value;
  }

  function session(state: Import, line: LineOf<"session">, redacted: Report): Outcome {
    const metadata = clean(line, redacted);
    const made = ensureSession(db, state.owner, line.externalId, metadata, now());
    if (made.created) {
      db.query("UPDATE sessions SET pinned = ?2, created_at = ?3, updated_at = ?4 WHERE id = ?1").run(
        made.id,
        Number(line.pinned ?? false),
        line.createdAt === undefined ? now() : ms(line.createdAt),
        line.updatedAt === undefined ? now() : ms(line.updatedAt),
      );
      return "created";
    }
    const known = getSession(db, state.owner, made.id)!;
    const merged = mergeMetadata(known.metadata, metadata);
    const pinned = line.pinned ?? known.pinned;
    if (Bun.deepEquals(merged, known.metadata) && pinned === known.pinned) return "unchanged";
    patchSession(db, made.id, { metadata: merged, pinned }, now());
    return "updated";
  }

  function episode(state: Import, line: LineOf<"episode">, redacted: Report): Outcome {
    const user = redact.text(line.userMessage ?? "");
    const reply = redact.text(line.aiResponse ?? "");
    const metadata = clean(line, redacted);
    redacted(user.count + reply.count);
    const made = {
      externalId: line.externalId,
      userMessage: user.text,
      aiResponse: reply.text,
      createdAt: line.createdAt === undefined ? null : ms(line.createdAt),
    };
    const hash = contentHash(made);
    const importId = line.importId ?? null;
    const known =
      (line.id === undefined ? null : sameTexts(db, state.owner, line.id, made)) ??
      sameEpisode(db, state.owner, { ...made, importId }, hash);
    if (known !== null) {
      if (line.id !== undefined) state.episodes.set(line.id, known);
      return "unchanged";
    }
    const at = now();
    const { id: sessionId } = ensureSession(db, state.owner, line.externalId, {}, at);
    const id = insertEpisode(
      db,
      {
        ...made,
        owner: state.owner,
        sessionId,
        tokenCount: line.tokenCount ?? estimateTokens(user.text) + estimateTokens(reply.text),
        metadata,
        complete: line.complete ?? true,
        recall: line.recall ?? true,
        importId,
      },
      at,
      hash,
    );
    hooks.changed(db, "episode", { owner: state.owner, id });
    if (line.id !== undefined) state.episodes.set(line.id, id);
    return "created";
  }

  function entity(state: Import, line: LineOf<"entity">, redacted: Report): Outcome {
    const name = redact.text(line.name);
    const notes = line.notes == null ? null : redact.text(line.notes);
    redacted(name.count + (notes?.count ?? 0));
    const known = entityByName(db, state.owner, name.text, line.type);
    const before = known === null ? null : getEntity(db, state.owner, known)!.metadata;
    const metadata = sourced(state, clean(line, redacted), before);
    const input = {
      owner: state.owner,
      name: name.text,
      type: line.type,
      notes: notes?.text ?? null,
      metadata,
    };
    const stored = putEntity(deps, line.notes === undefined ? { ...input, notes: undefined } : input);
    if (line.id !== undefined) state.entities.set(line.id, stored.id);
    if (!stored.created) return stored.changed ? "updated" : "unchanged";
    if (line.createdAt !== undefined) {
      db.query("UPDATE entities SET created_at = ?2 WHERE id = ?1").run(stored.id, ms(line.createdAt));
    }
    return "created";
  }

  function relationship(state: Import, line: LineOf<"relationship">, redacted: Report): Outcome {
    const label = redact.text(line.label);
    redacted(label.count);
    const fromId = here(state, "fromId", line.fromId);
    const toId = here(state, "toId", line.toId);
    const link = { fromId, toId, label: label.text };
    const known = getRelationship(db, link);
    const metadata = sourced(state, clean(line, redacted), known?.metadata ?? null);
    const merged = mergeMetadata(known?.metadata ?? {}, metadata);
    if (known !== null && Bun.deepEquals(merged, known.metadata)) return "unchanged";
    putRelationship(db, link, merged, line.createdAt === undefined ? now() : ms(line.createdAt));
    return known === null ? "created" : "updated";
  }

  /**
   * The exchanges that taught a row, by their numbers here, with those that are known already. One that is known by
   * hand, or none of whose exchanges came along, is nobody's but its own: it must not go with an exchange.
   */
  function sourced(state: Import, metadata: JsonObject, before: JsonObject | null): JsonObject {
    const { learned, episodeIds, ...rest } = metadata;
    if (!Array.isArray(episodeIds)) return metadata;
    const known = Array.isArray(before?.["episodeIds"]) ? before["episodeIds"] : [];
    const came = episodeIds.map((id) => state.episodes.get(Number(id))).filter((id) => id !== undefined);
    const all = [...new Set([...known, ...came])].slice(-SOURCES);
    if (all.length === 0) return rest;
    const byHand = before !== null && before["learned"] !== true;
    return { ...rest, ...(byHand || learned === undefined ? {} : { learned }), episodeIds: all };
  }

  function here(state: Import, field: string, id: number): number {
    const found = state.entities.get(id);
    if (found === undefined || getEntity(db, state.owner, found) === null) {
      throw invalid(field, "the entity of this number does not stand before it in the file");
    }
    return found;
  }

  function summary(state: Import, line: LineOf<"summary">, redacted: Report): Outcome {
    const text = redact.text(line.text);
    redacted(text.count);
    const first = state.episodes.get(line.firstEpisodeId);
    const last = state.episodes.get(line.lastEpisodeId);
    if (first === undefined || last === undefined) {
      throw invalid("firstEpisodeId", "the episodes of this summary do not stand before it in the file");
    }
    const at = line.createdAt === undefined ? now() : ms(line.createdAt);
    const { id: sessionId } = ensureSession(db, state.owner, line.externalId, {}, now());
    if (sameSummary(db, sessionId, text.text)) return "unchanged";
    const id = insertSummary(
      db,
      {
        owner: state.owner,
        sessionId,
        text: text.text,
        firstEpisodeId: first,
        lastEpisodeId: last,
        tokenCount: estimateTokens(text.text),
        automatic: line.automatic ?? false,
      },
      at,
    );
    if (line.stale === true) staleSummary(db, id, text.text);
    hooks.changed(db, "summary", { owner: state.owner, id });
    return "created";
  }

  return { session, episode, entity, relationship, summary };
}
