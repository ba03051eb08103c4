/** What a reader of another program's export makes: lines of our own import format, or why a piece was left out. */
import type { JsonObject, MemoryType } from "../memory/types.ts";

export type SessionLine = {
  kind: "session";
  externalId: string;
  metadata?: JsonObject;
  createdAt?: string;
  updatedAt?: string;
};
export type EpisodeLine = {
  kind: "episode";
  externalId: string;
  importId: string;
  userMessage: string;
  aiResponse: string;
  createdAt?: string;
  metadata?: JsonObject;
};
export type MemoryLine = {
  kind: "memory";
  id?: string;
  content: string;
  key?: string;
  type?: MemoryType;
  sessionId?: string;
  metadata?: JsonObject;
  createdAt?: string;
  expiresAt?: string;
};
export type Line = SessionLine | EpisodeLine | MemoryLine;

/** `item` is the number of the piece in the file, from 1; `owner` the API key it belonged to there. */
export type Piece = { item: number; line: Line; owner?: string } | { item: number; refused: string };
