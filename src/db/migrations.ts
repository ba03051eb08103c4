/** The numbered migrations, forward only; a test asserts that every file of migrations/ is listed. */
import identity from "../../migrations/0001_identity.sql" with { type: "text" };
import settings from "../../migrations/0002_settings.sql" with { type: "text" };
import conversations from "../../migrations/0003_conversations.sql" with { type: "text" };
import memories from "../../migrations/0004_memories.sql" with { type: "text" };
import entities from "../../migrations/0005_entities.sql" with { type: "text" };
import jobs from "../../migrations/0006_jobs.sql" with { type: "text" };
import receipts from "../../migrations/0007_receipts.sql" with { type: "text" };
import quality from "../../migrations/0008_quality.sql" with { type: "text" };
import backends from "../../migrations/0009_backends.sql" with { type: "text" };
import configVersion from "../../migrations/0010_config_version.sql" with { type: "text" };
import versionEpisode from "../../migrations/0011_version_episode.sql" with { type: "text" };
import contentBySession from "../../migrations/0012_content_by_session.sql" with { type: "text" };
import pinnedSessions from "../../migrations/0013_pinned_sessions.sql" with { type: "text" };

/** `migrations[n]` brings a database from version n to n + 1. */
export const migrations: readonly { name: string; sql: string }[] = [
  { name: "0001_identity", sql: identity },
  { name: "0002_settings", sql: settings },
  { name: "0003_conversations", sql: conversations },
  { name: "0004_memories", sql: memories },
  { name: "0005_entities", sql: entities },
  { name: "0006_jobs", sql: jobs },
  { name: "0007_receipts", sql: receipts },
  { name: "0008_quality", sql: quality },
  { name: "0009_backends", sql: backends },
  { name: "0010_config_version", sql: configVersion },
  { name: "0011_version_episode", sql: versionEpisode },
  { name: "0012_content_by_session", sql: contentBySession },
  { name: "0013_pinned_sessions", sql: pinnedSessions },
];
