/** Where memories can live. Every backend gives the same operations with the same results. */
import type { Memory, MemoryStatus, MemoryType } from "../memory/types.ts";

/** Fields that an update may set; what is left out stays. */
export type MemoryPatch = Partial<Omit<Memory, "id" | "apiKeyId" | "createdAt">>;

export type MemoryFilter = {
  /** The owner. Null spans owners, for management only. */
  apiKeyId: string | null;
  type?: MemoryType;
  sessionId?: string;
  status?: MemoryStatus;
  /** Case-folded substring of content or key. */
  q?: string;
  limit: number;
  offset: number;
  orderBy?: "createdAt" | "updatedAt";
  orderDir?: "asc" | "desc";
};

export type MemoryPage = { data: Memory[]; total: number; byType: Record<string, number> };

export type SearchConfig = {
  query: string;
  apiKeyId: string;
  limit: number;
  /** Rows of this session and rows without one. */
  sessionId?: string | null;
  type?: MemoryType;
  strategy?: string;
  maxTokens?: number;
  signal?: AbortSignal;
};

/** In the backend's own order; `score` is its own, or null. */
export type Found = { memory: Memory; score: number | null };

export type Health = { ok: boolean; latencyMs: number; error?: string };

export interface MemoryBackend {
  readonly id: string;
  readonly displayName: string;
  /** Stores the whole memory with our id. The answer may carry another id, by which the backend knows it from then on. */
  create(memory: Memory): Promise<Memory>;
  /** Null when there is none, or when it is another owner's. Owner null is for management, which sees every owner's. */
  get(owner: string | null, id: string): Promise<Memory | null>;
  /** False when there is none. */
  update(owner: string, id: string, patch: MemoryPatch): Promise<boolean>;
  delete(owner: string, id: string): Promise<boolean>;
  list(filter: MemoryFilter): Promise<MemoryPage>;
  search(config: SearchConfig): Promise<Found[]>;
  /** The active memory of this owner that holds a key; absent where a backend cannot look keys up. */
  byKey?(owner: string, key: string): Promise<Memory | null>;
  /** It keeps every field of a memory, so that what it says about status and pins counts, not the sidecar. */
  readonly whole?: boolean;
  /** Never throws. */
  health(): Promise<Health>;
  /** Moves to vectors of another model, when that is needed; true when it did. */
  migrate?(): Promise<boolean>;
  initialize?(): Promise<void>;
  shutdown?(): Promise<void>;
}

/** Why a backend could not answer, in one sentence without its address, headers or body. */
export class BackendError extends Error {
  readonly status: number | null;
  /** Milliseconds that it asked to wait, else null. */
  readonly retryAfterMs: number | null;
  constructor(
    message: string,
    options: { status?: number | null; retryAfterMs?: number | null; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = "BackendError";
    this.status = options.status ?? null;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
  /** The backend as a whole cannot be used now; no fault of this memory. */
  get partDown(): boolean {
    const { status } = this;
    return status === null || [401, 403, 408, 429].includes(status) || status >= 500;
  }
}
