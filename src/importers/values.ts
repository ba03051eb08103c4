/** Reading of what other programs wrote: anything may be missing or of another type. */
import type { Json, JsonObject } from "../memory/types.ts";

export type Loose = { [name: string]: unknown };

export function isLoose(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The first of these fields that is a text with something in it. */
export function textOf(value: Loose, ...names: string[]): string | undefined {
  for (const name of names) {
    const found = value[name];
    if (typeof found === "string" && found.trim() !== "") return found;
  }
  return undefined;
}

/** ISO time of an ISO text, of SQLite's `YYYY-MM-DD HH:MM:SS` (UTC), or of seconds or milliseconds since 1970. */
export function timeOf(value: unknown): string | undefined {
  let at = Number.NaN;
  if (typeof value === "number") at = value < 1e11 ? value * 1000 : value;
  else if (typeof value === "string")
    at = Date.parse(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(value) ? `${value.replace(" ", "T")}Z` : value);
  return Number.isFinite(at) && Math.abs(at) < 8.64e15 ? new Date(at).toISOString() : undefined;
}

/** A JSON object, also when it came as text; without what JSON does not have. */
export function objectOf(value: unknown): JsonObject | undefined {
  if (typeof value === "string") {
    try {
      return objectOf(JSON.parse(value));
    } catch {
      return undefined;
    }
  }
  return isLoose(value) ? (JSON.parse(JSON.stringify(value)) as { [name: string]: Json }) : undefined;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A UUID in lower case, or undefined for any other id. */
export function uuidOf(value: unknown): string | undefined {
  return typeof value === "string" && uuid.test(value) ? value.toLowerCase() : undefined;
}

/** Only the fields that are there. */
export function given<T extends object>(fields: { [Name in keyof T]: T[Name] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
