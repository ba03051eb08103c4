/** Reading and writing vectors of one space. Writers run inside the caller's transaction. */
import type { Database } from "bun:sqlite";
import { vectorTable, WINDOW, type Part, type Space } from "./vector-tables.ts";

/** Row number of a vector: which item and which of its windows. */
export function vectorRow(item: number, window: number): number {
  return item + window * WINDOW;
}

/** The item of a vector's row number. */
export function itemOf(row: number): number {
  // Most are first windows, and a remainder of such numbers is slow.
  return row < WINDOW ? row : row % WINDOW;
}

/** Puts an item's vectors in place of those it has, and takes it off the list of those that wait. */
export function putVectors(
  db: Database,
  space: Space,
  part: Part,
  owner: number,
  item: number,
  hash: Uint8Array,
  vectors: readonly Float32Array[],
): void {
  db.query("DELETE FROM vec_items WHERE space = ? AND part = ? AND owner_id = ? AND item = ?").run(
    space.id,
    part,
    owner,
    item,
  );
  const counts = db.query<{ rev: number }, [number, string, number, number]>(
    `INSERT INTO vec_counts (space, part, owner_id, n, items, rev) VALUES (?, ?, ?, 1, ?, 1)
     ON CONFLICT DO UPDATE SET n = n + 1, items = items + excluded.items, rev = rev + 1 RETURNING rev`,
  );
  const insertItem = db.query(
    "INSERT INTO vec_items (space, part, owner_id, item, window, hash, rev) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const table = vectorTable(space, part);
  const insertVector = db.query(
    space.vec0
      ? `INSERT INTO ${table} (rowid, owner_id, embedding) VALUES (?, ?, ${space.quantization === "int8" ? "vec_quantize_int8(?, 'unit')" : "?"})`
      : `INSERT INTO ${table} (id, owner_id, embedding) VALUES (?, ?, ?)`,
  );
  vectors.forEach((vector, window) => {
    const rev = counts.get(space.id, part, owner, window === 0 ? 1 : 0)!.rev;
    insertItem.run(space.id, part, owner, item, window, hash, rev);
    const stored = !space.vec0 && space.quantization === "int8" ? quantized(vector) : vector;
    insertVector.run(vectorRow(item, window), owner, bytesOf(stored));
  });
}

/** Rows, items and the change counter of an owner's vectors. */
export function ownerVectors(
  db: Database,
  space: Space,
  part: Part,
  owner: number,
): { n: number; items: number; rev: number } {
  return (
    db
      .query<{ n: number; items: number; rev: number }, [number, string, number]>(
        "SELECT n, items, rev FROM vec_counts WHERE space = ? AND part = ? AND owner_id = ?",
      )
      .get(space.id, part, owner) ?? { n: 0, items: 0, rev: 0 }
  );
}

/** A reader of single vectors, about 7 µs each; null for a row that is gone. */
export function vectorReader(db: Database, space: Space, part: Part): (row: number) => Float32Array | null {
  const query = db.query<[Uint8Array], [number]>(
    `SELECT embedding FROM ${vectorTable(space, part)} WHERE rowid = ?`,
  );
  return (row) => {
    const found = query.values(row)[0] as [Uint8Array] | undefined;
    return found === undefined ? null : floats(found[0], space);
  };
}

/** Chunks, of 16 vectors each, that are read at a time. */
const SLICE = 24;

/**
 * Reads all vectors of an owner, a slice a call, null at the end. Goes to vec0's own chunk tables where they look as in
 * sqlite-vec 0.1.9 (1.7 µs a vector), else vector by vector.
 */
export function bulkReader(
  db: Database,
  space: Space,
  part: Part,
  owner: number,
): () => { row: number; vector: Float32Array }[] | null {
  const table = vectorTable(space, part);
  const chunks = space.vec0 ? chunksOf(db, table, owner) : null;
  let at = 0;
  if (chunks === null) {
    const read = vectorReader(db, space, part);
    const rows = db
      .query<[number, number], [number, string, number]>(
        "SELECT item, window FROM vec_items WHERE space = ? AND part = ? AND owner_id = ?",
      )
      .values(space.id, part, owner) as [number, number][];
    return () => {
      if (at >= rows.length) return null;
      const slice = rows.slice(at, (at += SLICE * 16));
      return slice.flatMap(([item, window]) => {
        const row = vectorRow(item, window);
        const vector = read(row);
        return vector === null ? [] : [{ row, vector }];
      });
    };
  }
  const query = db.query<[Uint8Array, Uint8Array, Uint8Array], [string]>(
    // vec0's column `rowid` has no type: beside a typed one, which the plus hides, its index is not used.
    `SELECT c.validity, c.rowids, v.vectors FROM json_each(?) j CROSS JOIN ${table}_chunks c ON c.chunk_id = j.value
     CROSS JOIN ${table}_vector_chunks00 v ON v.rowid = +c.chunk_id`,
  );
  return () => {
    if (at >= chunks.length) return null;
    const found: { row: number; vector: Float32Array }[] = [];
    const some = query.values(JSON.stringify(chunks.slice(at, (at += SLICE)))) as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ][];
    for (const [validity, rowids, vectors] of some) {
      const ids = new DataView(rowids.buffer, rowids.byteOffset, rowids.byteLength);
      const count = rowids.byteLength / 8;
      const size = vectors.byteLength / count;
      for (let i = 0; i < count; i++) {
        if (((validity[i >> 3] ?? 0) >> (i & 7)) & 1)
          found.push({
            row: Number(ids.getBigInt64(i * 8, true)),
            vector: floats(vectors.subarray(i * size, (i + 1) * size), space),
          });
      }
    }
    return found;
  };
}

function chunksOf(db: Database, table: string, owner: number): number[] | null {
  try {
    const rows = db
      .query<[number], [number]>(
        `SELECT c.chunk_id FROM ${table}_chunks c WHERE c.partition00 = ? AND length(c.rowids) = 8 * c.size`,
      )
      .values(owner) as [number][];
    return rows.map(([id]) => id);
  } catch {
    return null;
  }
}

/** Exact nearest rows by vec0 or, without it, by reading all of the owner's vectors. At most 4,096. */
export function nearestRows(
  db: Database,
  space: Space,
  part: Part,
  owner: number,
  query: Float32Array,
  k: number,
): { row: number; cosine: number }[] {
  const table = vectorTable(space, part);
  if (space.vec0) {
    const wanted = space.quantization === "int8" ? "vec_quantize_int8(?, 'unit')" : "?";
    return (
      db
        .query<[number, number], [Uint8Array, number, number]>(
          `SELECT rowid, distance FROM ${table} WHERE embedding MATCH ${wanted} AND owner_id = ? AND k = ?`,
        )
        .values(bytesOf(query), owner, Math.min(k, MAX_K)) as [number, number][]
    ).map(([row, distance]) => ({ row, cosine: 1 - distance }));
  }
  const all: { row: number; cosine: number }[] = [];
  const rows = db.query<{ id: number; embedding: Uint8Array }, [string, number, number]>(
    `SELECT v.id AS id, v.embedding AS embedding FROM vec_items i
     JOIN ${table} v ON v.id = i.item + i.window * ${WINDOW} WHERE i.part = ? AND i.space = ? AND i.owner_id = ?`,
  );
  for (const { id, embedding } of rows.iterate(part, space.id, owner))
    all.push({ row: id, cosine: dot(query, floats(embedding, space), 0) });
  return all.sort((a, b) => b.cosine - a.cosine).slice(0, k);
}

/** vec0 refuses more neighbours than this. */
export const MAX_K = 4096;

/** Inner product of `query` with the vector that begins at `from`; the cosine of unit vectors. */
export function dot(query: Float32Array, vectors: Float32Array, from: number): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  const n = query.length;
  let at = 0;
  for (; at + 3 < n; at += 4) {
    a += query[at]! * vectors[from + at]!;
    b += query[at + 1]! * vectors[from + at + 1]!;
    c += query[at + 2]! * vectors[from + at + 2]!;
    d += query[at + 3]! * vectors[from + at + 3]!;
  }
  for (; at < n; at++) a += query[at]! * vectors[from + at]!;
  return a + b + c + d;
}

function floats(stored: Uint8Array, space: Space): Float32Array {
  if (space.quantization === "int8") {
    const codes = new Int8Array(stored.buffer, stored.byteOffset, stored.byteLength);
    const vector = new Float32Array(codes.length);
    let sum = 0;
    for (let at = 0; at < codes.length; at++) {
      vector[at] = codes[at]!;
      sum += codes[at]! ** 2;
    }
    const length = Math.sqrt(sum) || 1;
    for (let at = 0; at < vector.length; at++) vector[at]! /= length;
    return vector;
  }
  // A copy, since the driver's bytes need not begin at a multiple of four.
  return new Float32Array(stored.slice().buffer);
}

function quantized(vector: Float32Array): Int8Array {
  return Int8Array.from(vector, (x) => Math.max(-128, Math.min(127, Math.round(x * 127))));
}

function bytesOf(array: Float32Array | Uint32Array | Int8Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
