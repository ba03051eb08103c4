/** API keys: secrets are stored as SHA-256 with a visible prefix; the id of a key is the owner of its memories. */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { createHash, randomBytes } from "node:crypto";
import { conflict, invalid, notFound } from "../error.ts";
import { transact } from "./open.ts";
import { ensureOwner, SHARED_OWNER } from "./owners.ts";
import { iso, isoOrNull, ms } from "./time.ts";

export const keyScopes = ["proxy", "read:memory", "write:memory"] as const;
export type KeyScope = (typeof keyScopes)[number];

export type ApiKey = {
  id: string;
  name: string;
  prefix: string;
  scopes: KeyScope[];
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
  revokedAt: string | null;
  memory: "inherit" | "on" | "off";
  maxTokens: number | null;
  models: string[] | null;
  requestsPerMinute: number | null;
  tokensPerDay: number | null;
  sharedPool: boolean;
  userHeader: string | null;
  userField: string | null;
};

/** What may be set; left out on a change means unchanged, on creation the default. */
export type KeyFields = {
  name?: string | undefined;
  scopes?: KeyScope[] | undefined;
  expiresAt?: string | null | undefined;
  memory?: ApiKey["memory"] | undefined;
  maxTokens?: number | null | undefined;
  models?: string[] | null | undefined;
  requestsPerMinute?: number | null | undefined;
  tokensPerDay?: number | null | undefined;
  sharedPool?: boolean | undefined;
  userHeader?: string | null | undefined;
  userField?: string | null | undefined;
};

type KeyRow = {
  id: string;
  name: string;
  prefix: string;
  scopes: string;
  memory: ApiKey["memory"];
  max_tokens: number | null;
  models: string | null;
  requests_per_minute: number | null;
  tokens_per_day: number | null;
  shared_pool: number;
  user_header: string | null;
  user_field: string | null;
  created_at: number;
  last_used_at: number | null;
  expires_at: number | null;
  revoked_at: number | null;
};

const columns =
  "id, name, prefix, scopes, memory, max_tokens, models, requests_per_minute, tokens_per_day, shared_pool, user_header," +
  " user_field, created_at, last_used_at, expires_at, revoked_at";

/** An owner's name is `keyId` or `keyId:person`, so an id holds no colon. */
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export const hashSecret = (secret: string): Uint8Array => createHash("sha256").update(secret).digest();

function newSecret(): { secret: string; hash: Uint8Array; prefix: string } {
  const secret = `rk-${randomBytes(32).toString("base64url")}`;
  return { secret, hash: hashSecret(secret), prefix: `${secret.slice(0, 7)}…` };
}

/** Makes a key. The secret is in the answer and nowhere else. 400 for a bad id, 409 for one that is taken. */
export function createKey(
  db: Database,
  fields: KeyFields & { name: string; id?: string | undefined; disabled?: boolean },
  now = Date.now(),
): { secret: string; key: ApiKey } {
  const id = fields.id ?? `key-${randomBytes(5).toString("hex")}`;
  if (!idPattern.test(id))
    throw invalid(
      "id",
      "must be 1 to 64 of A-Z, a-z, 0-9, dot, dash, underscore, and begin with a letter or digit",
    );
  if (id === SHARED_OWNER)
    throw invalid("id", `${SHARED_OWNER} is the id of the shared pool; choose another`);
  const { secret, hash, prefix } = newSecret();
  return transact(db, () => {
    if (findKey(db, id)) throw conflict(`There is a key ${id} already.`, "id");
    db.query(
      "INSERT INTO api_keys (id, name, secret_hash, prefix, scopes, created_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ).run(
      id,
      fields.name,
      hash,
      prefix,
      JSON.stringify(fields.scopes ?? keyScopes),
      now,
      fields.disabled ? now : null,
    );
    ensureOwner(db, id);
    return { secret, key: changeKey(db, id, fields) };
  });
}

/** Changes what is given. 404 for an unknown id. */
export function changeKey(db: Database, id: string, fields: KeyFields): ApiKey {
  const set: Record<string, SQLQueryBindings | undefined> = {
    name: fields.name,
    scopes: fields.scopes === undefined ? undefined : JSON.stringify(fields.scopes),
    expires_at:
      fields.expiresAt === undefined ? undefined : fields.expiresAt === null ? null : ms(fields.expiresAt),
    memory: fields.memory,
    max_tokens: fields.maxTokens,
    models:
      fields.models === undefined ? undefined : fields.models === null ? null : JSON.stringify(fields.models),
    requests_per_minute: fields.requestsPerMinute,
    tokens_per_day: fields.tokensPerDay,
    shared_pool: fields.sharedPool === undefined ? undefined : Number(fields.sharedPool),
    user_header: fields.userHeader === undefined ? undefined : (fields.userHeader?.toLowerCase() ?? null),
    user_field: fields.userField,
  };
  const given = Object.entries(set).filter(
    (entry): entry is [string, SQLQueryBindings] => entry[1] !== undefined,
  );
  return transact(db, () => {
    if (given.length > 0) {
      db.query(`UPDATE api_keys SET ${given.map(([name]) => `${name} = ?`).join(", ")} WHERE id = ?`).run(
        ...given.map(([, value]) => value),
        id,
      );
    }
    const key = findKey(db, id);
    if (!key) throw notFound("key");
    if (key.userHeader !== null && key.userField !== null) {
      throw invalid("userField", "userHeader and userField are not set together");
    }
    return key;
  });
}

/** A new secret for the same key; the old one stops working at once, memories stay. Also brings back a revoked key. */
export function rotateKey(db: Database, id: string): { secret: string; key: ApiKey } {
  const { secret, hash, prefix } = newSecret();
  const { changes } = db
    .query("UPDATE api_keys SET secret_hash = ?, prefix = ?, revoked_at = NULL WHERE id = ?")
    .run(hash, prefix, id);
  if (changes === 0) throw notFound("key");
  return { secret, key: findKey(db, id)! };
}

/** Revokes at once; the rows of its owner stay for management. 404 when unknown or revoked before. */
export function revokeKey(db: Database, id: string, now = Date.now()): ApiKey {
  const { changes } = db
    .query("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL")
    .run(now, id);
  if (changes === 0) throw notFound("key");
  return findKey(db, id)!;
}

export function findKey(db: Database, id: string): ApiKey | null {
  const row = db.query<KeyRow, [string]>(`SELECT ${columns} FROM api_keys WHERE id = ?`).get(id);
  return row ? toKey(row) : null;
}

/** The key of a secret, whatever its state. Found by hash, so that no comparison depends on how much of it was right. */
export function keyBySecret(db: Database, secret: string): ApiKey | null {
  const row = db
    .query<KeyRow, [Uint8Array]>(`SELECT ${columns} FROM api_keys WHERE secret_hash = ?`)
    .get(hashSecret(secret));
  return row ? toKey(row) : null;
}

/** All keys, oldest first. */
export function listKeys(db: Database): ApiKey[] {
  return db.query<KeyRow, []>(`SELECT ${columns} FROM api_keys ORDER BY created_at, id`).all().map(toKey);
}

/** Sets `lastUsedAt` of keys by id. */
export function touchKeys(db: Database, used: ReadonlyMap<string, number>): void {
  const update = db.query(
    "UPDATE api_keys SET last_used_at = ?1 WHERE id = ?2 AND (last_used_at IS NULL OR last_used_at < ?1)",
  );
  transact(db, () => {
    for (const [id, at] of used) update.run(at, id);
  });
}

function toKey(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    scopes: JSON.parse(row.scopes) as KeyScope[],
    createdAt: iso(row.created_at),
    lastUsedAt: isoOrNull(row.last_used_at),
    expiresAt: isoOrNull(row.expires_at),
    revokedAt: isoOrNull(row.revoked_at),
    memory: row.memory,
    maxTokens: row.max_tokens,
    models: row.models === null ? null : (JSON.parse(row.models) as string[]),
    requestsPerMinute: row.requests_per_minute,
    tokensPerDay: row.tokens_per_day,
    sharedPool: row.shared_pool === 1,
    userHeader: row.user_header,
    userField: row.user_field,
  };
}
