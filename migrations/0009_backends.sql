-- Ids that another system gave our memories, where it did not keep ours.
CREATE TABLE backend_ids (
  backend TEXT NOT NULL,
  remote_id TEXT NOT NULL,
  memory_id TEXT NOT NULL,
  PRIMARY KEY (backend, remote_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX backend_ids_memory ON backend_ids (backend, memory_id);
