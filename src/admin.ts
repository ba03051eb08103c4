/** What the person who runs the box does from the faces, on the server's own connection: keys and settings. */
import type { Database } from "bun:sqlite";
import { createSession, useLink } from "./db/access.ts";
import { changeKey, createKey, findKey, listKeys, revokeKey, rotateKey, type KeyFields } from "./db/keys.ts";
import { ownerId, SHARED_OWNER } from "./db/owners.ts";
import { readMemorySettings, writeMemorySettings } from "./db/settings.ts";
import type { MemorySettingsPatch } from "./memory/settings.ts";

export type Admin = ReturnType<typeof createAdmin>;

export function createAdmin(deps: { db: Database; now?: () => number }) {
  const { db } = deps;
  const now = deps.now ?? Date.now;
  return {
    /** Whether rows could belong to this owner: a key, a person behind one that was seen, or the shared pool. */
    ownerExists: (name: string): boolean => name === SHARED_OWNER || ownerId(db, name) !== null,
    keys: {
      list: () => listKeys(db),
      find: (id: string) => findKey(db, id),
      /** The secret is in this answer and nowhere else. */
      create: (fields: KeyFields & { name: string; id?: string }) => createKey(db, fields, now()),
      change: (id: string, fields: KeyFields) => changeKey(db, id, fields),
      rotate: (id: string) => rotateKey(db, id),
      revoke: (id: string) => revokeKey(db, id, now()),
    },
    /** Sessions of the Studio: a one-time link is used up, a new session gives the value of its cookie. */
    studio: {
      useLink: (secret: string) => useLink(db, secret, now()),
      open: () => createSession(db, now()),
    },
    settings: {
      read: () => readMemorySettings(db),
      write: (patch: MemorySettingsPatch) => writeMemorySettings(db, patch),
    },
  };
}
