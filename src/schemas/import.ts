/** Lines of an import: our own export, and what the readers of other formats make of theirs. Unknown fields are passed over. */
import { z } from "zod";
import { limits, memoryOrigins, memoryStatuses, memoryTypes } from "../memory/types.ts";
import { jsonObject, text, time } from "./common.ts";

/** Characters of one side of an exchange. */
const MAX_MESSAGE = 2_000_000;

const id = z.int().min(1);
const metadata = jsonObject(limits.metadataBytes).optional();
const sessionId = text({ max: limits.sessionId });
const content = text({ max: limits.content });
const key = text({ max: limits.key }).nullable().optional();
const message = text({ min: 0, max: MAX_MESSAGE, blank: true }).nullable().optional();
const when = time.optional();

export const headLine = z.looseObject({ format: z.string() });

export const memoryLine = z.object({
  kind: z.literal("memory"),
  id: z.uuid().optional(),
  content,
  key,
  type: z.enum(memoryTypes).default("factual"),
  sessionId: sessionId.nullable().optional(),
  metadata,
  origin: z.enum(memoryOrigins).default("import"),
  status: z.enum(memoryStatuses).default("active"),
  supersededBy: z.uuid().nullable().optional(),
  pinned: z.boolean().optional(),
  byHand: z.boolean().optional(),
  episodeId: id.nullable().optional(),
  createdAt: when,
  expiresAt: time.nullable().optional(),
  version: z.int().min(1).optional(),
});

export const versionLine = z.object({
  kind: z.literal("version"),
  memoryId: z.uuid(),
  version: z.int().min(1),
  cause: text({ max: 64 }),
  at: time,
  since: when,
  type: z.enum(memoryTypes),
  key,
  content,
  metadata,
  sessionId: sessionId.nullable().optional(),
  expiresAt: time.nullable().optional(),
  status: z.enum(memoryStatuses).default("active"),
  episodeId: id.nullable().optional(),
});

export const sessionLine = z.object({
  kind: z.literal("session"),
  externalId: sessionId,
  metadata,
  pinned: z.boolean().optional(),
  createdAt: when,
  updatedAt: when,
});

export const episodeLine = z
  .object({
    kind: z.literal("episode"),
    /** A number of the file's own, by which later lines name it. */
    id: id.optional(),
    externalId: sessionId,
    userMessage: message,
    aiResponse: message,
    tokenCount: z.int().min(0).max(1_000_000_000).nullable().optional(),
    metadata,
    complete: z.boolean().optional(),
    recall: z.boolean().optional(),
    importId: text({ max: 200 }).nullable().optional(),
    createdAt: when,
  })
  .refine((line) => (line.userMessage ?? "").trim() !== "" || (line.aiResponse ?? "").trim() !== "", {
    path: ["userMessage"],
    message: "userMessage and aiResponse must not both be empty",
  });

export const entityLine = z.object({
  kind: z.literal("entity"),
  id: id.optional(),
  name: text({ max: 200 }),
  type: text({ max: 64 }),
  notes: text({ min: 0, max: limits.content, blank: true }).nullable().optional(),
  metadata,
  createdAt: when,
});

export const relationshipLine = z.object({
  kind: z.literal("relationship"),
  fromId: id,
  toId: id,
  label: text({ max: 200 }),
  metadata,
  createdAt: when,
});

export const summaryLine = z.object({
  kind: z.literal("summary"),
  externalId: sessionId,
  text: text({ max: 100_000 }),
  firstEpisodeId: id,
  lastEpisodeId: id,
  stale: z.boolean().optional(),
  automatic: z.boolean().optional(),
  createdAt: when,
});

export const importLine = z.discriminatedUnion("kind", [
  memoryLine,
  versionLine,
  sessionLine,
  episodeLine,
  entityLine,
  relationshipLine,
  summaryLine,
]);

export type ImportLine = z.output<typeof importLine>;
export type LineOf<Kind extends ImportLine["kind"]> = Extract<ImportLine, { kind: Kind }>;
