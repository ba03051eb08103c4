/** Memories and their earlier versions, as an import brings them. */
import {
  activeByKey,
  changeMemory,
  memoryById,
  putVersion,
  renameSuccessor,
  sameContent,
  versionsOf,
  type MemoryChange,
  type MemoryRow,
} from "../db/memories.ts";
import { ms } from "../db/time.ts";
import { invalid } from "../error.ts";
import { cleanContent, cleanKey, cleanMetadata } from "../memory/fields.ts";
import type { JsonObject } from "../memory/types.ts";
import type { LineOf } from "../schemas/import.ts";
import type { Import, ImportDeps, Outcome } from "./import.ts";

type Report = (count: number) => void;

export function createMemoryWriter({ db, store, redact, kept }: ImportDeps) {
  function clean(line: LineOf<"memory"> | LineOf<"version">, redacted: Report) {
    const content = cleanContent(line.content, redact);
    const key = cleanKey(line.key ?? null, redact);
    const metadata = cleanMetadata(line.metadata ?? {}, redact);
    redacted(content.count + key.count + metadata.count);
    return { content: content.text, key: key.text, metadata: metadata.value };
  }

  function memory(state: Import, line: LineOf<"memory">, redacted: Report): Outcome {
    const { content, key, metadata } = clean(line, redacted);
    const known = knownRow(state, line, content, key);
    if (known !== null) return update(state, known, line, content, key, metadata);
    const holder = key === null || line.status !== "active" ? null : activeByKey(db, state.owner, key);
    const stored = store.put({
      ownerId: state.owner,
      id: freeId(line.id),
      sessionId: line.sessionId ?? null,
      type: line.type,
      key,
      content,
      metadata,
      origin: line.origin,
      status: line.status,
      pinned: line.pinned,
      byHand: line.byHand,
      episodeId: episodeHere(state, line.episodeId),
      expiresAt: line.expiresAt == null ? line.expiresAt : ms(line.expiresAt),
      createdAt: line.createdAt === undefined ? undefined : ms(line.createdAt),
      cause: "import",
    });
    remember(state, line.id, stored.row);
    if (!stored.created) {
      if (stored.row.version !== holder?.version) return "updated";
      kept(stored.row);
      return "unchanged";
    }
    state.made.add(stored.row.id);
    changeMemory(db, stored.row.seq, {
      ...(line.version === undefined ? {} : { version: line.version }),
      ...(line.supersededBy == null
        ? {}
        : { superseded_by: state.memories.get(line.supersededBy) ?? line.supersededBy }),
    });
    return "created";
  }

  /** By its id, else by what it says. */
  function knownRow(
    state: Import,
    line: LineOf<"memory">,
    content: string,
    key: string | null,
  ): MemoryRow | null {
    const byId = line.id === undefined ? null : memoryById(db, state.owner, line.id);
    if (byId !== null) return byId;
    // Under an id that is free here the row is new, even where another says the same.
    if (line.id !== undefined && freeId(line.id) !== undefined) return null;
    return sameContent(db, state.owner, { key, content, type: line.type, status: line.status });
  }

  /** Undefined where the id belongs to somebody: the row then gets one of its own. */
  function freeId(id: string | undefined): string | undefined {
    return id !== undefined && memoryById(db, null, id) === null ? id : undefined;
  }

  function update(
    state: Import,
    row: MemoryRow,
    line: LineOf<"memory">,
    content: string,
    key: string | null,
    metadata: JsonObject,
  ): Outcome {
    remember(state, line.id, row);
    // What this row was once is no news: a later edit here is not undone by an old file.
    const past = versionsOf(db, row.seq).some(
      (version) => version.content === content && version.key === key,
    );
    if (past && row.content !== content) {
      kept(row);
      return "unchanged";
    }
    const change: MemoryChange = differing(row, {
      content,
      key,
      type: line.type,
      metadata: JSON.stringify(metadata),
      session_id: line.sessionId ?? null,
      expires_at: line.expiresAt == null ? null : ms(line.expiresAt),
      pinned: Number(line.pinned ?? row.pinned === 1),
      ...(line.id === undefined ? {} : { status: line.status }),
    });
    if (line.id === undefined) {
      // A file without ids says only what it says; fields it leaves out stay.
      if (line.expiresAt === undefined) delete change.expires_at;
      if (line.sessionId === undefined) delete change.session_id;
      if (line.metadata === undefined) delete change.metadata;
    }
    if (Object.keys(change).length === 0) {
      // An import that broke off may have left it without its history.
      if (line.version === row.version) state.made.add(row.id);
      kept(row);
      return "unchanged";
    }
    store.edit(row, change, "import");
    return "updated";
  }

  function version(state: Import, line: LineOf<"version">, redacted: Report): Outcome {
    const id = state.memories.get(line.memoryId) ?? line.memoryId;
    const row = memoryById(db, state.owner, id);
    if (row === null)
      throw invalid("memoryId", "the memory of this version does not stand before it in the file");
    // Only a row that came with this file, now or before, has this file's history.
    if (!state.made.has(row.id)) return "unchanged";
    const { content, key, metadata } = clean(line, redacted);
    const added = putVersion(db, row.seq, {
      version: line.version,
      cause: line.cause,
      at: ms(line.at),
      since: ms(line.since ?? line.at),
      type: line.type,
      key,
      content,
      metadata: JSON.stringify(metadata),
      session_id: line.sessionId ?? null,
      expires_at: line.expiresAt == null ? null : ms(line.expiresAt),
      status: line.status,
      episode_id: episodeHere(state, line.episodeId),
    });
    return added ? "created" : "unchanged";
  }

  function episodeHere(state: Import, id: number | null | undefined): number | null {
    return id == null ? null : (state.episodes.get(id) ?? null);
  }

  /** What the file calls `fileId` has another id here. Rows before it that it took the place of name it by the file's. */
  function remember(state: Import, fileId: string | undefined, row: MemoryRow): void {
    if (fileId === undefined || fileId === row.id) return;
    state.memories.set(fileId, row.id);
    renameSuccessor(db, state.owner, fileId, row.id);
  }

  return { memory, version };
}

/** The fields that are not what the row has. */
function differing(row: MemoryRow, change: MemoryChange): MemoryChange {
  return Object.fromEntries(
    Object.entries(change).filter(([name, value]) =>
      name === "metadata" ? !sameJson(row.metadata, String(value)) : row[name as keyof MemoryRow] !== value,
    ),
  ) as MemoryChange;
}

function sameJson(a: string, b: string): boolean {
  return a === b || Bun.deepEquals(JSON.parse(a), JSON.parse(b));
}
