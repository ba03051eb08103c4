/** Times are integer milliseconds UTC in the database and ISO 8601 everywhere else. */

export const iso = (ms: number): string => new Date(ms).toISOString();
export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : iso(ms));
/** Milliseconds of an ISO time that a schema has already checked. */
export const ms = (time: string): number => Date.parse(time);
export const DAY_MS = 86_400_000;

/** What is further ahead than this was stamped by a clock that has been put back since. */
export const AHEAD_MS = 60_000;
