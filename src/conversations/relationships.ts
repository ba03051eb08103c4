/** Relationships: labelled, directed links between two entities of one owner. */
import { getEntity } from "../db/entities.ts";
import { emptyLog, transact } from "../db/open.ts";
import { ownerId } from "../db/owners.ts";
import {
  deleteRelationship,
  getRelationship,
  listRelationships,
  putRelationship,
  type Direction,
  type Link,
} from "../db/relationships.ts";
import { notFound } from "../error.ts";
import { cleanMetadata } from "../memory/fields.ts";
import type { JsonObject, Relationship } from "../memory/types.ts";
import { mergeMetadata, readAs, type Caller, type ConversationDeps, type Paging } from "./deps.ts";

export function createRelationships(deps: ConversationDeps) {
  const { db, now } = deps;

  /** Both ends must be the owner's, whoever asks. */
  function requireEnds(owner: string, link: Link): void {
    const id = ownerId(db, owner);
    if (id === null || getEntity(db, id, link.fromId) === null || getEntity(db, id, link.toId) === null) {
      throw notFound("entity");
    }
  }

  /** The link, made when it is unknown; metadata of a known one is merged shallowly. */
  async function upsert(
    input: { owner: string; metadata?: JsonObject | undefined } & Link,
  ): Promise<{ relationship: Relationship; created: boolean; redacted: number }> {
    const metadata = cleanMetadata(input.metadata ?? {}, deps.redact);
    const label = deps.redact.text(input.label.trim());
    const link = { fromId: input.fromId, toId: input.toId, label: label.text };
    const created = transact(db, () => {
      requireEnds(input.owner, link);
      const known = getRelationship(db, link);
      putRelationship(db, link, mergeMetadata(known?.metadata ?? {}, metadata.value), now());
      return known === null;
    });
    return { relationship: getRelationship(db, link)!, created, redacted: metadata.count + label.count };
  }

  async function list(
    input: Caller & Paging & { entityId: number; direction: Direction },
  ): Promise<{ data: Relationship[]; total: number }> {
    if (getEntity(db, readAs(db, input), input.entityId) === null) throw notFound("entity");
    return listRelationships(db, input.entityId, input);
  }

  async function remove(input: { owner: string } & Link): Promise<{ success: true }> {
    const label = deps.redact.text(input.label.trim()).text;
    transact(db, () => {
      requireEnds(input.owner, input);
      if (!deleteRelationship(db, { fromId: input.fromId, toId: input.toId, label })) {
        throw notFound("relationship");
      }
    });
    emptyLog(db);
    return { success: true };
  }

  return { upsert, list, remove };
}
