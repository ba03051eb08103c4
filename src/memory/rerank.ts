/** The optional last word of a provider's reranker. A failure leaves the order as it was, and is seen in the status. */
import type { Loaded } from "./lines.ts";

/** Best candidates that are sent; the rest follow in their order. */
const DOCUMENTS = 20;
export const RERANK_MS = 500;
/** A failure is shown this long after the last success. */
export type RerankStatus = { available: boolean; reason: string | null };

/** POST `{base}/rerank` of the provider of `provider/model`. Throws with one sentence. */
export type RerankCall = (
  request: { model: string; query: string; documents: string[]; top_n: number },
  signal: AbortSignal,
) => Promise<{ results: { index: number; relevance_score: number }[] }>;

/** Reorders the best rows by a reranker, within `ms`. */
export function createReranker(call: RerankCall) {
  let status: RerankStatus = { available: false, reason: "Not used yet." };
  return {
    status: (): RerankStatus => status,
    async apply(
      model: string,
      query: string,
      rows: readonly Loaded[],
      ms: number,
    ): Promise<{ rows: Loaded[]; applied: boolean; reason: string | null }> {
      const head = rows.slice(0, DOCUMENTS);
      if (head.length < 2) return { rows: [...rows], applied: false, reason: null };
      const cancel = new AbortController();
      const timer = setTimeout(() => cancel.abort(), Math.min(RERANK_MS, ms));
      try {
        const documents = head.map((row) => row.text.replace(/^- (?:\[[^\]]*\] )?/, ""));
        const answer = await raced(
          call({ model, query, documents, top_n: documents.length }, cancel.signal),
          cancel.signal,
        );
        const order = checked(answer.results, head.length);
        const moved = order.map(({ index, relevance_score }): Loaded => ({
          ...head[index]!,
          score: relevance_score,
          tier: "rerank",
        }));
        const named = new Set(order.map(({ index }) => index));
        const rest = head.filter((_, index) => !named.has(index));
        status = { available: true, reason: null };
        return { rows: [...moved, ...rest, ...rows.slice(DOCUMENTS)], applied: true, reason: null };
      } catch (error) {
        const said = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
        const reason = cancel.signal.aborted
          ? `The reranker did not answer within ${Math.min(RERANK_MS, ms)} ms, so the order is ours.`
          : `The reranker failed (${said}), so the order is ours.`;
        status = { available: false, reason };
        return { rows: [...rows], applied: false, reason };
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

function checked(results: unknown, count: number): { index: number; relevance_score: number }[] {
  if (!Array.isArray(results)) throw new Error("its answer has no results");
  const seen = new Set<number>();
  return (results as { index: number; relevance_score: number }[])
    .filter(({ index, relevance_score }) => {
      const good = Number.isInteger(index) && index >= 0 && index < count && Number.isFinite(relevance_score);
      if (!good || seen.has(index)) return false;
      seen.add(index);
      return true;
    })
    .toSorted((a, b) => b.relevance_score - a.relevance_score);
}

/** Ends with the signal even when the call does not. */
function raced<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("time is up")), { once: true });
    work.then(resolve, reject);
  });
}
