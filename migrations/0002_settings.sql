-- Settings by their API name, and the model servers that requests are forwarded to.
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE providers (
  id TEXT PRIMARY KEY,
  base_url TEXT NOT NULL,
  -- Sealed with secret.key (AES-GCM): the key, and the header values as one JSON object.
  api_key BLOB,
  headers BLOB,
  wire TEXT NOT NULL DEFAULT '["chat"]',
  system_role TEXT NOT NULL DEFAULT 'auto',
  models TEXT,
  timeouts TEXT,
  fallbacks TEXT NOT NULL DEFAULT '[]',
  prices TEXT,
  passthrough_auth INTEGER NOT NULL DEFAULT 0,
  enabled INTEGER NOT NULL DEFAULT 1,
  is_default INTEGER NOT NULL DEFAULT 0,
  -- What was learned about the server: {"noStreamOptions":true, "forms":{"<model>":"…"}}.
  learned TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX providers_default ON providers (is_default) WHERE is_default = 1;
