-- Durable background work. A job that ends is deleted; leases let several processes share a folder.
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  type TEXT NOT NULL,
  owner_id INTEGER,
  state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'failed')),
  payload TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  run_at INTEGER NOT NULL,
  lease_by TEXT,
  lease_until INTEGER,
  -- A second job with the same value is not queued while the first waits.
  dedupe TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_due ON jobs (state, run_at, id);
CREATE INDEX jobs_owner ON jobs (owner_id, type, id);
CREATE UNIQUE INDEX jobs_dedupe ON jobs (type, dedupe) WHERE dedupe IS NOT NULL AND state = 'queued';
