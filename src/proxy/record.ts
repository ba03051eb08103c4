/** The step after the reply: usage, and with memory the exchange. */
import type { UsageRow } from "../db/usage.ts";
import { namedHash } from "../memory/conversation-hash.ts";
import type { Captured } from "../upstream/capture.ts";
import { costOf, countUsage, tokensOf } from "./account.ts";
import type { Forwarded } from "./forward.ts";
import type { Ended } from "./tee.ts";
import { reasonOf } from "./turn.ts";
import type { Turn } from "./turn.ts";

/** The reply has ended. */
export function finish(turn: Turn, forwarded: Forwarded, ended: Ended, ttftMs: number | null): void {
  const { deps } = turn;
  const reason = reasonOf(turn, forwarded);
  if (turn.prepared && reason === null && turn.prepared.injected > 0) {
    deps.log.info("memory.injection.injected", {
      count: turn.prepared.injected,
      tokens: turn.prepared.tokens,
      strategy: deps.settings().strategy,
      placement: forwarded.where,
      provider: forwarded.upstream.id,
      model: forwarded.model,
    });
  } else if (reason !== null) deps.log.debug("memory.injection.skipped", { reason });
  if (turn.route.counting) {
    addUsage(turn, forwarded, forwarded.answer.status, ttftMs);
    return;
  }
  record(turn, forwarded, ended, ttftMs);
}

/** Hands the exchange to the engine; a request that leaves none leaves its usage row. */
export function record(turn: Turn, forwarded: Forwarded | null, ended: Ended, ttftMs: number | null): void {
  const { deps, memory, prepared, said, lookup } = turn;
  const { captured, left, cut } = ended;
  const row = usageRow(turn, forwarded, left ? 499 : (forwarded?.answer.status ?? 502), ttftMs, captured);
  if (said === null || memory.owner === null) {
    turn.usage.add(row);
    return;
  }
  countUsage(deps.metrics, [row]);
  const names = namesAfter(turn, captured);
  // An in-band error is a failure like a cut: recorded as incomplete, teaching nothing.
  const broken = cut || captured.failed;
  deps.engine.exchange
    .record({
      owner: memory.owner,
      lookup,
      // A conversation with a history is looked up once more when it was not in time.
      sessionId: prepared || (lookup.history === null && lookup.chain.length === 0) ? turn.sessionId : null,
      receiptId: prepared?.receiptId ?? null,
      write: memory.write,
      keep: said.keep,
      provider: forwarded?.upstream.id ?? turn.upstream.id,
      model: forwarded?.model ?? turn.model,
      placement: forwarded && forwarded.where !== "none" ? forwarded.where : null,
      reason: prepared?.receiptId ? reasonOf(turn, forwarded) : null,
      fallbacks: forwarded?.fallbacks ?? [],
      user: said.user,
      assistant: captured.text,
      complete: captured.complete && !left && !broken,
      cut: broken,
      wantsTools: captured.wantsTools && captured.complete && !left && !broken,
      toolCalls: said.calls + captured.toolCalls.filter(Boolean).length,
      turn: said.turn,
      after: captured.complete && !left && !broken ? said.after(captured.text) : null,
      names,
      usage: row,
    })
    .catch((error: unknown) => deps.log.error("memory.record.failed", { error }));
}

/** Names under which the provider keeps the conversation from here. */
function namesAfter(turn: Turn, captured: Captured): string[] {
  if (turn.route.wire !== "responses") return [];
  const kept = turn.lookup.chain.filter((_, index) => index > 0 || turn.said?.continues !== true);
  return [...(captured.responseId === null ? [] : [namedHash("response", captured.responseId)]), ...kept];
}

/** A usage row for a request without a reply. */
export function addUsage(
  turn: Turn,
  forwarded: Forwarded | null,
  status: number,
  ttftMs: number | null,
): void {
  turn.usage.add(usageRow(turn, forwarded, status, ttftMs, null));
}

function usageRow(
  turn: Turn,
  forwarded: Forwarded | null,
  status: number,
  ttftMs: number | null,
  captured: Captured | null,
): UsageRow {
  const upstream = forwarded?.upstream ?? turn.upstream;
  const model = forwarded?.model ?? turn.model;
  const answered = captured !== null && status < 400;
  const { usage, estimated } =
    captured === null
      ? { usage: { input: 0, output: 0, cached: 0 }, estimated: false }
      : tokensOf(captured.usage, answered || status === 499 ? turn.sentChars / 4 : 0, captured.text);
  const injected = reasonOf(turn, forwarded) === null ? (turn.prepared?.tokens ?? 0) : 0;
  return {
    owner: turn.memory.owner,
    keyId: turn.principal.kind === "key" ? turn.principal.key.id : null,
    provider: upstream.id,
    model,
    route: turn.route.wire,
    status,
    tokensIn: Math.ceil(usage.input),
    tokensOut: usage.output,
    tokensInjected: injected,
    tokensCached: usage.cached,
    estimated,
    latencyMs: performance.now() - turn.startedAt,
    ttftMs,
    cost: costOf(upstream, model, usage),
    receiptId: turn.prepared?.receiptId ?? null,
    at: (turn.deps.now ?? Date.now)(),
  };
}
