/** Owners by name and number. Rows carry the number; every face speaks the name. */
import type { Database } from "bun:sqlite";

/** Owner of the pool that keys with `sharedPool` may read and only management writes. */
export const SHARED_OWNER = "shared";

/** The number of a known owner, or null. */
export function ownerId(db: Database, name: string): number | null {
  return db.query<{ id: number }, [string]>("SELECT id FROM owners WHERE name = ?").get(name)?.id ?? null;
}

/** The number of an owner, made when it is new. */
export function ensureOwner(db: Database, name: string): number {
  const known = ownerId(db, name);
  if (known !== null) return known;
  db.query("INSERT INTO owners (name) VALUES (?) ON CONFLICT DO NOTHING").run(name);
  return ownerId(db, name)!;
}

/** Whether the key of this owner, or of the person behind it, may read the shared pool. */
export function readsSharedPool(db: Database, owner: string): boolean {
  const key = db
    .query<{ shared_pool: number }, [string]>("SELECT shared_pool FROM api_keys WHERE id = ?")
    .get(owner.split(":", 1)[0] ?? "");
  return key?.shared_pool === 1;
}

/** A key's own owner and the people behind it. */
export function ownersOfKey(db: Database, keyId: string): { id: number; name: string }[] {
  return db
    .query<{ id: number; name: string }, [string, string, string]>(
      "SELECT id, name FROM owners WHERE name = ? OR (name >= ? AND name < ?) ORDER BY id",
    )
    .all(keyId, `${keyId}:`, `${keyId};`);
}

/** The first owners in the order they were seen, without those of the engine itself (`~verify`). */
export function ownerNames(db: Database, limit: number): string[] {
  return db
    .query<{ name: string }, [number]>("SELECT name FROM owners WHERE name NOT LIKE '~%' ORDER BY id LIMIT ?")
    .all(limit)
    .map((row) => row.name);
}

/** The name of an owner's number, or null. */
export function ownerName(db: Database, id: number): string | null {
  return db.query<{ name: string }, [number]>("SELECT name FROM owners WHERE id = ?").get(id)?.name ?? null;
}
