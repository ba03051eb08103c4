-- The same content is looked for within a session. By owner its hashes lay all over the index, and the deletion of a long
-- session wrote most of it for each of its batches.
DROP INDEX episodes_content;
CREATE INDEX episodes_content ON episodes (session_id, content_hash) WHERE content_hash IS NOT NULL;
