/** The context package: memories, exchanges, entities and summaries that fit a question, ranked together under one budget. */
import type { Database } from "bun:sqlite";
import { ownerId } from "../db/owners.ts";
import { getSession, sessionIdOf } from "../db/sessions.ts";
import { notFound } from "../error.ts";
import { kinds as allKinds } from "../memory/types.ts";
import type {
  Episode,
  Kind,
  LinkedEntity,
  Memory,
  Resolution,
  Retrieved,
  RetrieveInput,
  RetrieveResult,
  Summary,
  Tier,
} from "../memory/types.ts";

export type ContextInput = {
  owner: string;
  query: string;
  /** Row id or external id: rows of this session, and memories that belong to none. */
  sessionId?: number | undefined;
  externalId?: string | undefined;
  kinds?: readonly Kind[] | undefined;
  limit?: number | undefined;
  maxTokens?: number | undefined;
  sharedPool?: boolean | undefined;
};

/** One row of the package. `text` is its line in the block; ids are uuids of memories and row ids of the others. */
export type ContextRow = { score: number | null; tier: Tier; tokens: number; text: string } & (
  | { kind: "memory"; id: string; item: Memory }
  | { kind: "episode"; id: number; item: Episode }
  | { kind: "entity"; id: number; item: LinkedEntity }
  | { kind: "summary"; id: number; item: Summary }
);

export type ContextPackage = {
  data: ContextRow[];
  /** The block as it would be injected. */
  text: string;
  totalTokensUsed: number;
  budgetMaxTokens: number;
  resolution: Resolution;
};

const LIMIT = 20;

export function createContext(deps: {
  db: Database;
  retrieve: (input: RetrieveInput) => Promise<RetrieveResult>;
}) {
  const { db } = deps;

  async function build(input: ContextInput): Promise<ContextPackage> {
    const session = sessionOf(input);
    const found = await deps.retrieve({
      owner: input.owner,
      query: input.query,
      kinds: input.kinds ?? allKinds,
      limit: input.limit ?? LIMIT,
      ...(session === null ? {} : { scope: "session", sessionId: session }),
      ...(input.maxTokens === undefined ? {} : { maxTokens: input.maxTokens }),
      ...(input.sharedPool === undefined ? {} : { sharedPool: input.sharedPool }),
      mode: "interactive",
    });
    return {
      data: found.results.map(rowOf),
      text: found.text,
      totalTokensUsed: found.totalTokensUsed,
      budgetMaxTokens: found.budgetMaxTokens,
      resolution: found.resolution,
    };
  }

  function sessionOf({ owner: name, sessionId, externalId }: ContextInput): string | null {
    if (sessionId === undefined && externalId === undefined) return null;
    const owner = ownerId(db, name) ?? -1;
    const id = sessionId ?? sessionIdOf(db, owner, externalId ?? "");
    const session = id === null ? null : getSession(db, owner, id);
    if (session === null || (externalId !== undefined && session.externalId !== externalId)) {
      throw notFound("session");
    }
    return session.externalId;
  }

  return { build };
}

function rowOf(found: Retrieved): ContextRow {
  const { score, tier, tokens, text } = found;
  const common = { score, tier, tokens, text };
  switch (found.kind) {
    case "memory":
      return { ...common, kind: found.kind, id: found.id, item: found.item };
    case "episode":
      return { ...common, kind: found.kind, id: Number(found.id), item: found.item };
    case "entity":
      return { ...common, kind: found.kind, id: Number(found.id), item: found.item };
    case "summary":
      return { ...common, kind: found.kind, id: Number(found.id), item: found.item };
  }
}
