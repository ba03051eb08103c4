/** Stores the people, places and things that an exchange speaks about, each with the exchange it came from. */
import {
  deleteEntityRows,
  entityByFolded,
  getEntity,
  isLeftOver,
  learnedWithoutSource,
  renameEntity,
  updateEntity,
} from "../db/entities.ts";
import { activeByKey } from "../db/memories.ts";
import {
  deleteLearnedLinks,
  deleteRelationship,
  getRelationship,
  learnedLinksFrom,
  putRelationship,
  replaceLearned,
  taughtLater,
} from "../db/relationships.ts";
import { namedThings } from "../extract/entities.ts";
import type { ModelAnswer } from "../extract/model.ts";
import type { JsonObject } from "../memory/types.ts";
import { collapse } from "../text/fold.ts";
import type { ConversationDeps } from "./deps.ts";
import { foldedName, putEntity, SELF } from "./entities.ts";

/** What a text says about named things. A number is a place in `entities`, `self` the person who speaks. */
export type FoundEntities = {
  entities: readonly { name: string; type: string; notes?: string; aliases?: readonly string[] }[];
  /** `single`: one at a time, so a new one takes the place of what was learned before. */
  relations: readonly { from: number | "self"; to: number | "self"; label: string; single?: boolean }[];
};

/** What the user's own words name, by patterns. */
export function foundInText(user: string): FoundEntities {
  const things = namedThings(user);
  return {
    entities: things.map(({ name, type }) => ({ name, type })),
    relations: things.map(({ label, single }, to) => ({ from: "self" as const, to, label, single })),
  };
}

/** What a model named, its relations by place instead of by name. */
export function foundByModel({ entities, relations }: ModelAnswer["entities"]): FoundEntities {
  const end = (name: string) =>
    name === "self" ? ("self" as const) : entities.findIndex((one) => one.name === name);
  return {
    entities,
    relations: relations
      .map(({ from, to, label }) => ({ from: end(from), to: end(to), label }))
      .filter(({ from, to }) => from !== -1 && to !== -1),
  };
}

/** What the speaker is called until a name is known. */
const UNNAMED = "User";
/** Exchanges that an entity or a relationship names as its sources. */
export const SOURCES = 20;

/** Inside the caller's transaction. */
export function learnEntities(
  deps: Pick<ConversationDeps, "db" | "hooks" | "now" | "redact">,
  exchange: { owner: number; episodeId: number },
  found: FoundEntities,
): void {
  if (found.entities.length === 0) return;
  const { db, redact } = deps;
  const { owner, episodeId } = exchange;

  const ids = found.entities.map(({ name, type, notes, aliases }) => {
    const clean = redact.text(collapse(name));
    // A secret is no name, whatever stands around it.
    if (clean.count > 0 || clean.text === "") return null;
    const known = entityByFolded(db, owner, foldedName(clean.text), type);
    const before = known === null ? {} : getEntity(db, owner, known)!.metadata;
    return putEntity(
      deps,
      {
        owner,
        name: clean.text.slice(0, 200),
        type,
        notes: notes === undefined ? undefined : redact.text(notes).text,
        metadata: {
          ...(known === null ? { learned: true } : {}),
          ...withSource(before, episodeId),
          ...(aliases === undefined ? {} : { aliases: merged(before["aliases"], aliases) }),
        },
      },
      true,
    ).id;
  });

  let self: number | null = null;
  const end = (at: number | "self") =>
    at === "self" ? (self ??= speaker(deps, exchange)) : (ids[at] ?? null);
  for (const relation of found.relations) {
    const fromId = end(relation.from);
    const toId = end(relation.to);
    const label = collapse(relation.label).slice(0, 200);
    if (fromId === null || toId === null || fromId === toId || label === "") continue;
    const link = { fromId, toId, label };
    // An imported conversation changes nothing that was said after it.
    if (relation.single === true && taughtLater(db, link, episodeId)) continue;
    if (relation.single === true) replaceLearned(db, link);
    const known = getRelationship(db, link)?.metadata ?? { learned: true };
    putRelationship(db, link, { ...known, ...withSource(known, episodeId) }, deps.now());
  }
}

/**
 * Inside the caller's transaction: deletes what was learned from these exchanges, which are gone, when no other that
 * taught it is there. What was learned from exchanges that were deleted before stayed then, and stays.
 */
export function dropSourceless(
  deps: Pick<ConversationDeps, "db" | "hooks">,
  owner: number,
  gone: readonly number[],
): void {
  const { db, hooks } = deps;
  deleteLearnedLinks(db, owner, gone);
  const ids = learnedWithoutSource(db, owner, gone);
  for (const id of ids) hooks.removed(db, "entity", { owner, id });
  deleteEntityRows(db, ids);
}

/**
 * Inside the caller's transaction: a memory was corrected, forgotten or deleted, so what was learned with it about the
 * speaker goes too: the links to what it names, and the entities that nothing is linked to then.
 */
export function dropUnsaid(
  deps: Pick<ConversationDeps, "db" | "hooks">,
  before: Said,
  after: Pick<Said, "content" | "metadata"> | null,
): void {
  const { db, hooks } = deps;
  const label = labelOf(before.key);
  if (label === null && before.episode_id === null) return;
  const owner = before.owner_id;
  const self = entityByFolded(db, owner, SELF, "person");
  if (self === null) return;
  const denied = after !== null && (JSON.parse(after.metadata) as JsonObject)["polarity"] === "-";
  for (const link of learnedLinksFrom(db, self)) {
    const taught = Array.isArray(link.episodeIds) && link.episodeIds.includes(before.episode_id);
    if (!taught && link.label.replaceAll("-", " ") !== label) continue;
    if (!names(before.content, link.name)) continue;
    if (after !== null && !denied && names(after.content, link.name)) continue;
    deleteRelationship(db, link);
    if (!isLeftOver(db, link.toId)) continue;
    hooks.removed(db, "entity", { owner, id: link.toId });
    deleteEntityRows(db, [link.toId]);
  }
}

type Said = {
  owner_id: number;
  key: string | null;
  content: string;
  episode_id: number | null;
  metadata: string;
};

/** The label of the link that goes with a slot. */
function labelOf(key: string | null): string | null {
  if (key === "identity:home") return "lives in";
  if (key === "identity:employer") return "works at";
  const slot = /^(?:identity:my_(?<mine>.+)|preference:(?<favourite>favourite_.+))$/.exec(key ?? "")?.groups;
  return (slot?.["mine"] ?? slot?.["favourite"])?.replaceAll("_", " ") ?? null;
}

/** Whether the text holds the name, as whole words where its script has blanks. */
function names(text: string, name: string): boolean {
  const [all, part] = [foldedName(text), foldedName(name)];
  const inside = (char: string | undefined) =>
    char !== undefined &&
    /(?!\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana})[\p{L}\p{N}]/u.test(char);
  for (let at = all.indexOf(part); at >= 0; at = all.indexOf(part, at + 1)) {
    if (!inside(all[at - 1]) && !inside(all[at + part.length])) return true;
  }
  return false;
}

/** The entity of the person who speaks, under the name that is known by now. */
function speaker(
  deps: Pick<ConversationDeps, "db" | "hooks" | "now">,
  { owner, episodeId }: { owner: number; episodeId: number },
): number {
  const { db, hooks } = deps;
  const memory = activeByKey(db, owner, "identity:name");
  const value = memory === null ? null : (JSON.parse(memory.metadata) as JsonObject)["value"];
  const name = typeof value === "string" && value.trim() !== "" ? collapse(value).slice(0, 200) : null;
  const known = entityByFolded(db, owner, SELF, "person");
  if (known === null) {
    const metadata = { self: true, learned: true, ...withSource({}, episodeId) };
    return putEntity(deps, { owner, name: name ?? UNNAMED, type: "person", metadata }, true).id;
  }
  const before = getEntity(db, owner, known)!;
  const metadata = { ...before.metadata, ...withSource(before.metadata, episodeId) };
  updateEntity(db, known, { ...before, metadata }, deps.now());
  if (name !== null && before.name !== name && renameEntity(db, owner, known, name, foldedName(name))) {
    hooks.changed(db, "entity", { owner, id: known });
  }
  return known;
}

/** `episodeIds` with this exchange, the newest last. */
function withSource(metadata: JsonObject, episodeId: number): JsonObject {
  const before = Array.isArray(metadata["episodeIds"]) ? metadata["episodeIds"] : [];
  return { episodeIds: [...before.filter((id) => id !== episodeId), episodeId].slice(-SOURCES) };
}

function merged(before: unknown, added: readonly string[]): string[] {
  const known = Array.isArray(before) ? before.filter((alias) => typeof alias === "string") : [];
  return [...new Set([...known, ...added])].slice(0, 100);
}
