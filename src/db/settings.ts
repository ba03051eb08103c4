/** Stored settings: the memory settings by their API names, and configuration values set with `config set`. */
import type { Database } from "bun:sqlite";
import { defaultSettings, isSetting, settingFields } from "../memory/settings.ts";
import type { MemorySettings } from "../memory/settings.ts";
import { openText } from "../seal.ts";
import type { Seal } from "../seal.ts";
import { createWatch } from "./watch.ts";
import type { Watch } from "./watch.ts";

const CONFIG = "config:";
/** What the names of the memory settings begin with. */
export const MEMORY = "memory:";

/** All values whose name starts with `prefix`, parsed, without the prefix. */
function readPrefix(db: Database, prefix: string): Record<string, unknown> {
  const rows = db
    .query<{ name: string; value: string }, [string, string]>(
      "SELECT name, value FROM settings WHERE name >= ? AND name < ?",
    )
    .all(prefix, `${prefix}\u{10ffff}`);
  return Object.fromEntries(
    rows.map((row) => [row.name.slice(prefix.length), JSON.parse(row.value) as unknown]),
  );
}

export function writeSetting(db: Database, name: string, value: unknown): void {
  db.query(
    "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  ).run(name, JSON.stringify(value));
}

/** The memory settings in force. A stored value that this version does not know is left alone and ignored. */
export function readMemorySettings(db: Database): MemorySettings {
  const stored = readPrefix(db, MEMORY);
  const settings: Record<string, unknown> = { ...defaultSettings };
  for (const [name, field] of Object.entries(settingFields))
    if (name in stored && isSetting(field, stored[name])) settings[name] = stored[name];
  return settings as MemorySettings;
}

/** Stores a first value: only where nothing was stored yet. */
export function seedMemorySetting(db: Database, name: keyof MemorySettings, value: unknown): void {
  db.query("INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING").run(
    MEMORY + name,
    JSON.stringify(value),
  );
}

/** Configuration values that `config set` stored, as text. */
export function readStoredConfig(db: Database): Record<string, string> {
  return Object.fromEntries(
    Object.entries(readPrefix(db, CONFIG)).map(([name, value]) => [name, String(value)]),
  );
}

export function writeStoredConfig(db: Database, name: string, value: string): void {
  writeSetting(db, CONFIG + name, value);
}

/** A group of settings of one part (for example `qdrant:`), validated by its owner. */
export function readSettingGroup(db: Database, group: string): Record<string, unknown> {
  return readPrefix(db, `${group}:`);
}

/**
 * Reads the memory settings through a cache that notices writes of other connections and processes. With the seal the
 * secrets in them are opened; without, they stay as they are stored.
 */
export function settingsReader(
  db: Database,
  seal?: Seal,
  watch: Watch = createWatch(db),
): { read(): MemorySettings; forget(): void } {
  // Most writes are not to the settings: the rows are compared before they are parsed again.
  const rows = db.prepare<{ text: string | null }, []>(
    "SELECT group_concat(name || '=' || value, char(0)) AS text FROM settings WHERE name >= 'memory:' AND name < 'memory;'",
  );
  let seen = -1;
  let text: string | null = null;
  let cached: MemorySettings | null = null;
  return {
    read() {
      const current = watch();
      if (cached && current === seen) return cached;
      seen = current;
      const now = rows.get()!.text;
      if (!cached || now !== text) {
        text = now;
        cached = seal ? opened(readMemorySettings(db), seal) : readMemorySettings(db);
      }
      return cached;
    },
    forget() {
      cached = null;
    },
  };
}

function opened(settings: MemorySettings, seal: Seal): MemorySettings {
  const { customApiKey } = settings;
  return { ...settings, customApiKey: customApiKey === null ? null : openText(seal, customApiKey) };
}
