-- Who may call, and whose rows are whose.
CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

-- An owner is an API key's id, `keyId:person`, or `shared`. Numbers are never re-used.
CREATE TABLE owners (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  secret_hash BLOB UNIQUE,
  prefix TEXT NOT NULL,
  scopes TEXT NOT NULL,
  memory TEXT NOT NULL DEFAULT 'inherit' CHECK (memory IN ('inherit', 'on', 'off')),
  max_tokens INTEGER,
  models TEXT,
  requests_per_minute INTEGER,
  tokens_per_day INTEGER,
  shared_pool INTEGER NOT NULL DEFAULT 0,
  user_header TEXT,
  user_field TEXT,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;

CREATE TABLE sign_in_links (hash BLOB PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE studio_sessions (
  hash BLOB PRIMARY KEY,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
