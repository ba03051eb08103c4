-- What was injected into which request, and what each request cost.
CREATE TABLE receipts (
  id TEXT PRIMARY KEY,
  owner_id INTEGER NOT NULL,
  session_id TEXT,
  provider TEXT,
  model TEXT,
  injected INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  placement TEXT,
  reason TEXT,
  latency_ms REAL NOT NULL,
  fallbacks TEXT NOT NULL DEFAULT '[]',
  candidates TEXT NOT NULL DEFAULT '[]',
  -- The injected block; emptied when a memory in it is deleted for good.
  text TEXT,
  redacted INTEGER NOT NULL DEFAULT 0,
  -- What the exchange taught: [{"id","action":"created|updated|archived|…"}].
  learned TEXT NOT NULL DEFAULT '[]',
  episode_id INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX receipts_owner ON receipts (owner_id, created_at DESC);
CREATE INDEX receipts_newest ON receipts (created_at DESC);
CREATE INDEX receipts_episode ON receipts (episode_id) WHERE episode_id IS NOT NULL;

CREATE TABLE receipt_uses (
  kind TEXT NOT NULL,
  ref TEXT NOT NULL,
  receipt_id TEXT NOT NULL REFERENCES receipts (id) ON DELETE CASCADE,
  PRIMARY KEY (kind, ref, receipt_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipt_uses_receipt ON receipt_uses (receipt_id);

-- Blocks that were injected, by the hash of the conversation up to their user turn, to be put back byte-identical.
CREATE TABLE blocks (
  owner_id INTEGER NOT NULL,
  hash BLOB NOT NULL,
  session_id TEXT,
  text TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  -- JSON: uuids of memories, and "episode:<id>" for recalled exchanges.
  memory_ids TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX blocks_age ON blocks (used_at);

CREATE TABLE usage (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner_id INTEGER,
  key_id TEXT,
  provider TEXT,
  model TEXT,
  route TEXT NOT NULL,
  status INTEGER NOT NULL,
  tokens_in INTEGER NOT NULL DEFAULT 0,
  tokens_out INTEGER NOT NULL DEFAULT 0,
  tokens_injected INTEGER NOT NULL DEFAULT 0,
  tokens_cached INTEGER NOT NULL DEFAULT 0,
  estimated INTEGER NOT NULL DEFAULT 0,
  latency_ms REAL NOT NULL,
  ttft_ms REAL,
  cost REAL,
  receipt_id TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_time ON usage (created_at);
CREATE INDEX usage_key ON usage (key_id, created_at);
