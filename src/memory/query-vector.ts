/** The vector of a question, in the space that is searched and in time, or the reason why there is none. */
import type { Embedder } from "../embed/types.ts";
import type { Space } from "../search/vector-tables.ts";
import type { Embedding } from "./embedding.ts";
import { within } from "../within.ts";

export type QueryVector =
  | { vector: Float32Array; embedder: Embedder; reason: null }
  | { vector: null; embedder: Embedder | null; reason: string };

/** What is left of a deadline, in milliseconds, at least 0. */
export type Left = () => number;

/** Embeds `text` within the time that is left. `space` null: there are no vectors yet. */
export async function queryVector(
  embedding: Pick<Embedding, "get" | "local" | "failed">,
  space: Space | null,
  text: string,
  left: Left,
): Promise<QueryVector> {
  const late = (what: string) => `${what} within the deadline, so words alone were searched.`;
  const got = await within(embedding.get(), left());
  if (got === null)
    return { vector: null, embedder: null, reason: late("The embedding model was not ready") };
  const { embedder: current, resolution } = got;
  if (space === null)
    return {
      vector: null,
      embedder: current,
      reason: current === null ? resolution.reason : "No memory has a vector yet.",
    };
  const embedder = current?.signature === space.signature ? current : await formerOf(embedding, space);
  if (embedder === null) {
    const reason =
      current === null
        ? resolution.reason
        : "The vectors are being made anew by another model; until then words alone are searched.";
    return { vector: null, embedder: current, reason };
  }
  const cancel = new AbortController();
  try {
    const made = await within(embedder.embed([text], cancel.signal), left());
    const vector = made?.[0];
    if (vector === undefined) {
      cancel.abort();
      return { vector: null, embedder, reason: late("The question could not be embedded") };
    }
    if (vector.length !== space.dim || !vector.every(Number.isFinite))
      return { vector: null, embedder, reason: "The embedding model gave a vector that is not usable." };
    return { vector, embedder, reason: null };
  } catch (error) {
    embedding.failed(embedder, error);
    const said = error instanceof Error ? error.message : String(error);
    return { vector: null, embedder, reason: `The question could not be embedded: ${said}` };
  }
}

/** A local model that made the searched space while another one is in force. */
async function formerOf(embedding: Pick<Embedding, "local">, space: Space): Promise<Embedder | null> {
  const source = space.signature.split(":")[0];
  if (source !== "static" && source !== "transformers") return null;
  try {
    const embedder = await embedding.local(source);
    return embedder.signature === space.signature ? embedder : null;
  } catch {
    return null;
  }
}
