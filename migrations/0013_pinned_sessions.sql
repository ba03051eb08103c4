-- Exchanges past their retention are recalled from these alone.
CREATE INDEX sessions_pinned ON sessions (owner_id) WHERE pinned = 1;
