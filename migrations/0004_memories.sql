-- Durable statements, their earlier versions, and what was deleted for good.
CREATE TABLE memories (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner_id INTEGER NOT NULL REFERENCES owners (id),
  session_id TEXT,
  type TEXT NOT NULL CHECK (type IN ('factual', 'episodic', 'procedural', 'semantic')),
  key TEXT,
  content TEXT NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}',
  origin TEXT NOT NULL CHECK (origin IN ('user', 'assistant', 'api', 'mcp', 'import', 'summary')),
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'pending', 'superseded', 'archived')),
  superseded_by TEXT,
  pinned INTEGER NOT NULL DEFAULT 0,
  -- 1: an instruction, or the slot name, language or role: applies to every request, as a pinned one does.
  standing INTEGER NOT NULL DEFAULT 0,
  -- 1: a person edited, pinned or approved it, so a repeated turn does not take it back.
  by_hand INTEGER NOT NULL DEFAULT 0,
  episode_id INTEGER REFERENCES episodes (id) ON DELETE SET NULL,
  version INTEGER NOT NULL DEFAULT 1,
  tokens INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  confirmed_at INTEGER NOT NULL,
  expires_at INTEGER,
  access_count INTEGER NOT NULL DEFAULT 0,
  last_accessed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX memories_key ON memories (owner_id, key) WHERE status = 'active' AND key IS NOT NULL;
CREATE INDEX memories_newest ON memories (owner_id, status, created_at DESC, seq DESC);
CREATE INDEX memories_all ON memories (status, created_at DESC, seq DESC);
CREATE INDEX memories_session ON memories (owner_id, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX memories_standing ON memories (owner_id, created_at DESC) WHERE status = 'active' AND (standing = 1 OR pinned = 1);
CREATE INDEX memories_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL;
-- Import without ids asks whether a memory says the same already.
CREATE INDEX memories_content ON memories (owner_id, substr(content, 1, 48));
CREATE INDEX memories_episode ON memories (episode_id) WHERE episode_id IS NOT NULL;
CREATE INDEX memories_superseded ON memories (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE memory_versions (
  memory_seq INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  -- Why this version was left: upsert, edit, restore, archive, supersede, summarize, approve …
  cause TEXT NOT NULL,
  -- When this version was left, and since when it had held.
  at INTEGER NOT NULL,
  since INTEGER NOT NULL,
  type TEXT NOT NULL,
  key TEXT,
  content TEXT NOT NULL,
  metadata TEXT NOT NULL,
  session_id TEXT,
  expires_at INTEGER,
  status TEXT NOT NULL,
  PRIMARY KEY (memory_seq, version)
) STRICT, WITHOUT ROWID;

-- What was deleted for good is not learned again from exchanges older than `at`.
CREATE TABLE tombstones (
  owner_id INTEGER NOT NULL,
  hash BLOB NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, hash)
) STRICT, WITHOUT ROWID;

-- Counts that lists and statistics read instead of scanning, kept in step below.
CREATE TABLE memory_counts (
  owner_id INTEGER NOT NULL,
  status TEXT NOT NULL,
  type TEXT NOT NULL,
  origin TEXT NOT NULL,
  n INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  PRIMARY KEY (owner_id, status, type, origin)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER memories_count_insert AFTER INSERT ON memories BEGIN
  INSERT INTO memory_counts VALUES (new.owner_id, new.status, new.type, new.origin, 1, new.tokens)
  ON CONFLICT DO UPDATE SET n = n + 1, tokens = tokens + excluded.tokens;
END;
CREATE TRIGGER memories_count_delete AFTER DELETE ON memories BEGIN
  UPDATE memory_counts SET n = n - 1, tokens = tokens - old.tokens
  WHERE owner_id = old.owner_id AND status = old.status AND type = old.type AND origin = old.origin;
END;
CREATE TRIGGER memories_count_update AFTER UPDATE OF owner_id, status, type, origin, tokens ON memories
WHEN old.owner_id IS NOT new.owner_id OR old.status IS NOT new.status OR old.type IS NOT new.type
  OR old.origin IS NOT new.origin OR old.tokens IS NOT new.tokens
BEGIN
  UPDATE memory_counts SET n = n - 1, tokens = tokens - old.tokens
  WHERE owner_id = old.owner_id AND status = old.status AND type = old.type AND origin = old.origin;
  INSERT INTO memory_counts VALUES (new.owner_id, new.status, new.type, new.origin, 1, new.tokens)
  ON CONFLICT DO UPDATE SET n = n + 1, tokens = tokens + excluded.tokens;
END;
