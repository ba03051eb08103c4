/** Entities: named things, found again by name or alias. */
import {
  deleteEntityRows,
  entityByFolded,
  entityByName,
  getEntity,
  insertEntity,
  listEntities,
  setEntityNames,
  updateEntity,
} from "../db/entities.ts";
import { emptyLog, transact } from "../db/open.ts";
import { ensureOwner } from "../db/owners.ts";
import { notFound } from "../error.ts";
import { cleanMetadata } from "../memory/fields.ts";
import type { Entity, JsonObject } from "../memory/types.ts";
import { collapse, fold } from "../text/fold.ts";
import { mergeMetadata, readAs, type Caller, type ConversationDeps, type Paging } from "./deps.ts";

export type EntityInput = {
  owner: string;
  name: string;
  type: string;
  notes?: string | null | undefined;
  metadata?: JsonObject | undefined;
};

const MAX_ALIASES = 100;

/** The name under which the entity of the owner's own person is found (`metadata.self`); no text folds to it. */
export const SELF = "\u0001self";

/** The form in which names are compared. */
export function foldedName(name: string): string {
  return collapse(fold(name));
}

/** Names by which an entity is found: its own, and `metadata.aliases` where that is a list of texts. */
function namesOf(name: string, metadata: JsonObject): string[] {
  const aliases = Array.isArray(metadata["aliases"]) ? metadata["aliases"] : [];
  const names = [name, ...aliases.filter((alias) => typeof alias === "string").slice(0, MAX_ALIASES)];
  const self = metadata["self"] === true ? [SELF] : [];
  return [...new Set([...names.map(foldedName), ...self])].filter((folded) => folded !== "");
}

/** `changed` is false where everything was so already. */
export type StoredEntity = { id: number; created: boolean; changed: boolean };

/**
 * Inside the caller's transaction: updates the entity of this name and type, or else the one that has the name as an
 * alias (notes replaced when given, metadata merged shallowly), or inserts a new one. With `loose` a name in other
 * letter case counts as the same, and notes that are there stay.
 */
export function putEntity(
  deps: Pick<ConversationDeps, "db" | "hooks" | "now">,
  input: {
    owner: number;
    name: string;
    type: string;
    notes?: string | null | undefined;
    metadata: JsonObject;
  },
  loose = false,
): StoredEntity {
  const { db, hooks, now } = deps;
  const { owner, name, type } = input;
  const known = entityByName(db, owner, name, type) ?? byAlias();
  if (known === null) {
    const id = insertEntity(
      db,
      { owner, name, type, notes: input.notes ?? null, metadata: input.metadata },
      now(),
    );
    setEntityNames(db, owner, type, id, namesOf(name, input.metadata));
    hooks.changed(db, "entity", { owner, id });
    return { id, created: true, changed: true };
  }
  const before = getEntity(db, owner, known)!;
  const metadata = mergeMetadata(before.metadata, input.metadata);
  const notes = loose
    ? (before.notes ?? input.notes ?? null)
    : input.notes === undefined
      ? before.notes
      : input.notes;
  if (notes === before.notes && Bun.deepEquals(metadata, before.metadata)) {
    return { id: known, created: false, changed: false };
  }
  updateEntity(db, known, { name: before.name, notes, metadata }, now());
  setEntityNames(db, owner, type, known, namesOf(before.name, metadata));
  hooks.changed(db, "entity", { owner, id: known });
  return { id: known, created: false, changed: true };

  function byAlias(): number | null {
    const found = entityByFolded(db, owner, foldedName(name), type);
    if (found === null || loose) return found;
    // A name that differs in letter case alone is another entity; an alias is the same one.
    const other = getEntity(db, owner, found);
    return other !== null && foldedName(other.name) === foldedName(name) ? null : found;
  }
}

export function createEntities(deps: ConversationDeps) {
  const { db, redact } = deps;

  function find(caller: Caller, id: number): Entity {
    const entity = getEntity(db, readAs(db, caller), id);
    if (entity === null) throw notFound("entity");
    return entity;
  }

  async function upsert(input: EntityInput): Promise<{ entity: Entity; created: boolean; redacted: number }> {
    const name = redact.text(collapse(input.name));
    const notes = input.notes == null ? null : redact.text(input.notes);
    const metadata = cleanMetadata(input.metadata ?? {}, redact);
    const stored = transact(db, () =>
      putEntity(deps, {
        owner: ensureOwner(db, input.owner),
        name: name.text,
        type: input.type.trim(),
        notes: input.notes == null ? input.notes : notes?.text,
        metadata: metadata.value,
      }),
    );
    return {
      entity: getEntity(db, null, stored.id)!,
      created: stored.created,
      redacted: name.count + (notes?.count ?? 0) + metadata.count,
    };
  }

  async function get(input: Caller & { id: number }): Promise<Entity> {
    return find(input, input.id);
  }

  /** Newest first. */
  async function list(
    input: Caller & Paging & { type?: string | undefined; named?: string | undefined },
  ): Promise<{ data: Entity[]; total: number }> {
    return listEntities(db, readAs(db, input), { ...input, type: input.type?.trim() });
  }

  /** Its relationships go with it. */
  async function remove(input: Caller & { id: number }): Promise<{ success: true }> {
    transact(db, () => {
      const entity = find(input, input.id);
      deps.hooks.removed(db, "entity", { owner: ensureOwner(db, entity.apiKeyId), id: entity.id });
      deleteEntityRows(db, [entity.id]);
    });
    emptyLog(db);
    return { success: true };
  }

  return { upsert, get, list, remove };
}
