-- Named things and the labelled, directed links between them.
CREATE TABLE entities (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner_id INTEGER NOT NULL REFERENCES owners (id),
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  notes TEXT,
  metadata TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (owner_id, name, type)
) STRICT;
CREATE INDEX entities_type ON entities (owner_id, type, id);

-- Folded name and aliases, by which the same thing is found again.
CREATE TABLE entity_names (
  owner_id INTEGER NOT NULL,
  type TEXT NOT NULL,
  folded TEXT NOT NULL,
  entity_id INTEGER NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  PRIMARY KEY (owner_id, type, folded, entity_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX entity_names_entity ON entity_names (entity_id);

CREATE TABLE relationships (
  from_id INTEGER NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  to_id INTEGER NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  label TEXT NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  PRIMARY KEY (from_id, to_id, label)
) STRICT, WITHOUT ROWID;
CREATE INDEX relationships_to ON relationships (to_id);
