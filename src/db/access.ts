/** Credentials of the person who runs the box: the management token, one-time sign-in links, Studio sessions. */
import type { Database } from "bun:sqlite";
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { getMeta, setMeta } from "./meta.ts";
import { DAY_MS } from "./time.ts";

export const LINK_MS = 30 * 60_000;
export const SESSION_MS = 30 * DAY_MS;

const TOKEN = "management_token_sha256";
const CONFIGURED = "configured_token_sha256";
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
const random = (): string => randomBytes(32).toString("base64url");

/** Makes and stores a new management token; the old one, every Studio session and every link stop working. Shown once. */
export function rotateToken(db: Database): string {
  const token = `rm-${random()}`;
  setMeta(db, TOKEN, digest(token).toString("hex"));
  endAccess(db);
  return token;
}

/** Ends every session and link when the token that the configuration fixes is another one than at the last start. */
export function noteConfiguredToken(db: Database, configured: string | null): void {
  const now = configured === null ? "" : digest(configured).toString("hex");
  const before = getMeta(db, CONFIGURED);
  if (before === now) return;
  setMeta(db, CONFIGURED, now);
  // What was never noted may be the same one.
  if (before !== null) endAccess(db);
}

function endAccess(db: Database): void {
  db.run("DELETE FROM studio_sessions");
  db.run("DELETE FROM sign_in_links");
}

export function hasToken(db: Database): boolean {
  return getMeta(db, TOKEN) !== null;
}

/** True for the token in force: the configured one when there is one, else the stored one. Takes the same time either way. */
export function isToken(db: Database, configured: string | null, given: string): boolean {
  const stored = getMeta(db, TOKEN);
  const expected =
    configured !== null ? digest(configured) : Buffer.from(typeof stored === "string" ? stored : "", "hex");
  const actual = digest(given);
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}

/** A fresh link secret: single use, 30 minutes. */
export function createLink(db: Database, now = Date.now()): string {
  const secret = random();
  db.query("DELETE FROM sign_in_links WHERE expires_at < ?").run(now);
  db.query("INSERT INTO sign_in_links (hash, expires_at) VALUES (?, ?)").run(digest(secret), now + LINK_MS);
  return secret;
}

/** Uses a link up; false when it is unknown, used or old. */
export function useLink(db: Database, secret: string, now = Date.now()): boolean {
  const used = db
    .query<{ expires_at: number }, [Buffer]>("DELETE FROM sign_in_links WHERE hash = ? RETURNING expires_at")
    .get(digest(secret));
  return used !== null && used.expires_at >= now;
}

/** Opens a Studio session and returns the value of its cookie. */
export function createSession(db: Database, now = Date.now()): string {
  const secret = random();
  db.query("DELETE FROM studio_sessions WHERE expires_at < ?").run(now);
  db.query("INSERT INTO studio_sessions (hash, created_at, expires_at) VALUES (?, ?, ?)").run(
    digest(secret),
    now,
    now + SESSION_MS,
  );
  return secret;
}

export function isSession(db: Database, secret: string, now = Date.now()): boolean {
  const row = db
    .query<{ expires_at: number }, [Buffer]>("SELECT expires_at FROM studio_sessions WHERE hash = ?")
    .get(digest(secret));
  return row !== null && row.expires_at >= now;
}

export function endSession(db: Database, secret: string): void {
  db.query("DELETE FROM studio_sessions WHERE hash = ?").run(digest(secret));
}
