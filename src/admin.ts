/** What the person who runs the box does from the faces, on the server's own connection: keys and settings. */
import type { Database } from "bun:sqlite";
import { keepSecrets, maskBackends, openBackends, sealBackends } from "./backends/config.ts";
import { createSession, useLink } from "./db/access.ts";
import { changeKey, createKey, findKey, listKeys, revokeKey, rotateKey, type KeyFields } from "./db/keys.ts";
import { ownerId, ownerNames, SHARED_OWNER } from "./db/owners.ts";
import { readMemorySettings } from "./db/settings.ts";
import { writeMemorySettings } from "./db/settings-write.ts";
import { AppError, invalid } from "./error.ts";
import type { MemorySettings, MemorySettingsPatch } from "./memory/settings.ts";
import { maskSecret, openText, sealText, type Seal } from "./seal.ts";
import { resolveBaseUrl } from "./upstream/policy.ts";

export type Admin = ReturnType<typeof createAdmin>;

export function createAdmin(deps: { db: Database; seal: Seal; now?: () => number }) {
  const { db, seal } = deps;
  const now = deps.now ?? Date.now;
  return {
    /** Whether rows could belong to this owner: a key, a person behind one that was seen, or the shared pool. */
    ownerExists: (name: string): boolean => name === SHARED_OWNER || ownerId(db, name) !== null,
    /** Keys and the people behind them whose rows were seen, at most `limit`. */
    ownerNames: (limit: number) => ownerNames(db, limit),
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
    /** Secrets are shown masked; what was shown, sent back, changes nothing; an empty one is removed. */
    settings: {
      read: () => masked(readMemorySettings(db), seal),
      write: (patch: MemorySettingsPatch) => masked(writeMemorySettings(db, sealed(patch, db, seal)), seal),
    },
  };
}

function masked(settings: MemorySettings, seal: Seal): MemorySettings {
  const { customApiKey } = settings;
  return {
    ...settings,
    customApiKey: customApiKey === null ? null : maskSecret(openText(seal, customApiKey) ?? ""),
    backendConfigs: maskBackends(openBackends(settings.backendConfigs, seal)),
  };
}

function sealed(
  { customApiKey, ...given }: MemorySettingsPatch,
  db: Database,
  seal: Seal,
): MemorySettingsPatch {
  const patch = { ...given };
  checkUrl(patch.customBaseUrl);
  // The older name of the same.
  if (patch.strategy === "exact") patch.strategy = "recent";
  if (patch.backendConfigs) {
    const stored = readMemorySettings(db).backendConfigs;
    patch.backendConfigs = sealBackends(keepSecrets(stored, patch.backendConfigs, seal), seal);
  }
  if (customApiKey === undefined) return patch;
  if (customApiKey === null || customApiKey === "") return { ...patch, customApiKey: null };
  if (customApiKey === masked(readMemorySettings(db), seal).customApiKey) return patch;
  if (!/^[\x21-\x7e]{1,500}$/.test(customApiKey)) {
    throw invalid("customApiKey", "must be at most 500 printable ASCII characters without blanks");
  }
  return { ...patch, customApiKey: sealText(seal, customApiKey) };
}

/** The URL policy of providers, as far as it can be told without asking DNS. */
function checkUrl(url: string | null | undefined): void {
  if (url == null) return;
  try {
    resolveBaseUrl(url);
  } catch (thrown) {
    if (!(thrown instanceof AppError)) throw thrown;
    throw invalid("customBaseUrl", thrown.details[0]?.message ?? thrown.message);
  }
}
