-- The verbatim record: sessions and their exchanges.
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner_id INTEGER NOT NULL REFERENCES owners (id),
  external_id TEXT NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}',
  pinned INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (owner_id, external_id)
) STRICT;
CREATE INDEX sessions_owner ON sessions (owner_id, id);
CREATE INDEX sessions_newest ON sessions (owner_id, updated_at DESC);

CREATE TABLE episodes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  owner_id INTEGER NOT NULL REFERENCES owners (id),
  user_message TEXT NOT NULL,
  ai_response TEXT NOT NULL,
  token_count INTEGER NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}',
  complete INTEGER NOT NULL DEFAULT 1,
  -- 0: a memory learned from it was deleted, so it is never ranked, injected or summarised again.
  recall INTEGER NOT NULL DEFAULT 1,
  -- Hash of the conversation up to its user turn: the same turn sent again replaces the episode.
  turn_hash BLOB,
  -- The caller's own id of a bulk line, and the hash of (session, createdAt, texts) by which lines without one are known.
  import_id TEXT,
  content_hash BLOB,
  stored_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX episodes_session ON episodes (session_id, created_at, id);
CREATE INDEX episodes_owner ON episodes (owner_id, created_at);
CREATE UNIQUE INDEX episodes_import ON episodes (owner_id, import_id) WHERE import_id IS NOT NULL;
CREATE INDEX episodes_content ON episodes (owner_id, content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX episodes_turn ON episodes (session_id, turn_hash) WHERE turn_hash IS NOT NULL;

-- Hashes of conversations as they stood, by which a request without a session id finds its session again.
CREATE TABLE session_turns (
  owner_id INTEGER NOT NULL,
  hash BLOB NOT NULL,
  session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, hash, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_turns_session ON session_turns (session_id);

CREATE TABLE summaries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  owner_id INTEGER NOT NULL REFERENCES owners (id),
  text TEXT NOT NULL,
  first_episode_id INTEGER NOT NULL,
  last_episode_id INTEGER NOT NULL,
  token_count INTEGER NOT NULL,
  -- 1: an episode that it covers is gone or not to be recalled, so it is never ranked or injected.
  stale INTEGER NOT NULL DEFAULT 0,
  -- 1: made by the nightly run, which puts a newer one in its place.
  automatic INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX summaries_session ON summaries (session_id, id);
CREATE INDEX summaries_owner ON summaries (owner_id, created_at);
