-- The exchange that an earlier version of a memory came from: what it says there no longer holds.
ALTER TABLE memory_versions ADD COLUMN episode_id INTEGER;
