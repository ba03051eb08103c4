/** What every part that needs vectors knows about the models that make them. */

export type EmbeddingKind = "static" | "transformers" | "remote";

export interface Embedder {
  readonly source: EmbeddingKind;
  readonly model: string;
  /** Taken from one real embedding when the embedder was opened, never from a table of models. */
  readonly dimensions: number;
  /** `source:model:dim`, the space the vectors live in. */
  readonly signature: string;
  /** One vector of unit length a text, in order. An empty text gives the zero vector. Throws EmbeddingError. */
  embed(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]>;
  /** The pieces of a text that fit the model's input, an eighth of overlap, at most 8. A short text is its own only piece. */
  windows(text: string): string[];
  close(): Promise<void>;
}

/** Why a vector could not be made, in one sentence for people. Never holds text, keys, headers or bodies. */
export class EmbeddingError extends Error {
  /** true: the whole part is down (connection, 401, 429, 5xx, no model), so it is no fault of this text. */
  readonly partDown: boolean;
  /** Upstream status for a remote, else null. */
  readonly status: number | null;
  /** Milliseconds the remote asked us to wait, else null. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    options: { partDown: boolean; status?: number | null; retryAfterMs?: number | null; cause?: unknown },
  ) {
    super(message, { cause: options.cause });
    this.name = "EmbeddingError";
    this.partDown = options.partDown;
    this.status = options.status ?? null;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}
