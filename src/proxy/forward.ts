/**
 * Sends a request until something answers: retries before the first byte, weaker forms when the injected request is
 * refused, then the fallback providers. Every attempt starts from the client's own body.
 */
import { firstForm, weaker } from "../memory/inject.ts";
import type { Form, SystemRole, Where } from "../memory/inject.ts";
import { TransportError } from "../upstream/errors.ts";
import type { Answer } from "../upstream/answer.ts";
import type { Learned, Upstream } from "../upstream/providers.ts";
import { systemRoleOf, takesDeveloper } from "../upstream/roles.ts";
import { attemptBody, wantsUsage } from "./attempt.ts";
import type { Asked } from "./attempt.ts";

export interface ForwardRequest extends Asked {
  /** The first provider and its fallbacks, each with the model's name there. */
  targets: { upstream: Upstream; model: string }[];
  streaming: boolean;
  /** One call with this body; rejects with a TransportError. */
  send(upstream: Upstream, body: Buffer): Promise<Answer>;
  learn(upstream: Upstream, add: Learned): void;
  signal: AbortSignal;
}

export interface Forwarded {
  answer: Answer;
  /** The beginning of an error's body, when it was read on the way. */
  read: { bytes: Buffer; whole: boolean } | null;
  upstream: Upstream;
  model: string;
  form: Form;
  where: Where;
  /** The usage chunk is ours and is taken out of the stream. */
  askedUsage: boolean;
  /** Every form was refused, so nothing of memory went through. */
  rejected: boolean;
  /** What happened on the way, for the receipt. */
  fallbacks: string[];
}

const RETRIES = 2;
const MAX_FORMS = 2;
/** A `Retry-After` longer than this is the client's to wait for. */
const MAX_WAIT_MS = 10_000;
const ERROR_BODY = 64 * 1024;

export async function forward(request: ForwardRequest): Promise<Forwarded> {
  const fallbacks: string[] = [];
  let first: Forwarded | null = null;
  let failure: TransportError | null = null;
  for (const target of request.targets) {
    if (target !== request.targets[0]) fallbacks.push(`provider ${target.upstream.id}`);
    try {
      const got = await toOne(request, target, fallbacks);
      if (!mayRetry(got.answer.status)) {
        first?.answer.abort();
        return got;
      }
      if (first) got.answer.abort();
      first ??= got;
    } catch (error) {
      if (!(error instanceof TransportError) || error.kind === "aborted") throw error;
      failure ??= error;
    }
  }
  if (first) return first;
  throw failure ?? new TransportError("connect", "The provider could not be reached.");
}

/** One provider: forms from the strongest that its policy allows, each with its retries. */
async function toOne(
  request: ForwardRequest,
  target: { upstream: Upstream; model: string },
  fallbacks: string[],
): Promise<Forwarded> {
  const { upstream, model } = target;
  const { wire, conversation, placement } = request;
  const role: SystemRole = systemRoleOf(upstream, model);
  const injecting = request.blocks.length > 0;
  let form: Form = injecting
    ? (upstream.learned.forms?.[model] ?? firstForm(wire, { role, placement }, conversation.marked))
    : "none";
  let askUsage =
    wire === "chat" &&
    request.streaming &&
    !upstream.learned.noStreamOptions &&
    !wantsUsage(request.body.json);
  const developer = takesDeveloper(upstream);
  let refused: Forwarded | null = null;
  let forms = 0;
  for (;;) {
    const plan = attemptBody(request, { model, role, form, takesDeveloper: developer, askUsage });
    const { answer, read } = await withRetries(request, upstream, plan.bytes, form !== "none");
    const got: Forwarded = {
      answer,
      read,
      upstream,
      model,
      form,
      where: plan.where,
      askedUsage: askUsage,
      rejected: false,
      fallbacks,
    };
    if (answer.status < 400) {
      if (refused) {
        fallbacks.push(`form ${form}`);
        if (!tooLong(refused)) request.learn(upstream, { forms: { [model]: form } });
      }
      return got;
    }
    if (read && askUsage && (answer.status === 400 || answer.status === 422) && blamesUsage(read.bytes)) {
      askUsage = false;
      request.learn(upstream, { noStreamOptions: true });
      fallbacks.push("without stream_options");
      continue;
    }
    const weakerHelps =
      form !== "none" && forms < MAX_FORMS && read !== null && blamesForm(answer.status, read.bytes);
    if (!weakerHelps) {
      // All forms were refused alike: it was not the memory, and the client gets the first answer.
      return refused ? { ...refused, rejected: true } : got;
    }
    refused ??= got;
    forms++;
    form = weaker(form);
  }
}

/** Sends one body up to three times; error answers come back with their beginning read. */
async function withRetries(
  request: ForwardRequest,
  upstream: Upstream,
  body: Buffer,
  injected: boolean,
): Promise<{ answer: Answer; read: Forwarded["read"] }> {
  for (let attempt = 0; ; attempt++) {
    let answer: Answer;
    let read: Forwarded["read"] = null;
    try {
      answer = await request.send(upstream, body);
      if (answer.status < 400) return { answer, read };
      read = await answer.read(ERROR_BODY);
      if (!mayRetry(answer.status) || attempt === RETRIES) return { answer, read };
      if (injected && blamesForm(answer.status, read.bytes)) return { answer, read };
    } catch (error) {
      if (!(error instanceof TransportError) || attempt === RETRIES || !isConnection(error)) throw error;
      // A server that is starting again is back soon; one that is down must not cost the client seconds.
      await pause(15 * 2 ** attempt, request.signal);
      continue;
    }
    const wait = retryAfter(answer) ?? 200 * 2 ** attempt * (0.75 + Math.random() / 2);
    if (wait > MAX_WAIT_MS) return { answer, read };
    if (!read?.whole) answer.abort();
    await pause(wait, request.signal);
  }
}

const mayRetry = (status: number): boolean => status === 408 || status === 429 || status >= 500;

/** Failures before any byte of an answer. A time that ran out is not tried again: the client has waited enough. */
const isConnection = (error: TransportError): boolean => error.kind === "connect" || error.kind === "closed";

/** Milliseconds of a `Retry-After` in either form, or null. */
function retryAfter(answer: Answer): number | null {
  const value = answer.header("retry-after");
  if (value === null) return null;
  const ms = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

/** Whether a weaker form may be accepted: a refused body, or a template that broke on it. */
function blamesForm(status: number, body: Buffer): boolean {
  if (status === 400 || status === 422) return true;
  return (
    status === 500 &&
    /\brole|system|template|jinja|alternat|message order|order of (?:the )?messages/i.test(body.toString())
  );
}

const blamesUsage = (body: Buffer): boolean =>
  /stream_options|include_usage|unrecogni[sz]ed|unknown (?:field|param|argument|name)|extra (?:fields|inputs)|not permitted|unexpected (?:field|keyword)|additional propert/i.test(
    body.toString(),
  );

/** A request that was only too long says nothing about forms. */
const tooLong = ({ read }: Forwarded): boolean =>
  /context (?:length|window|size)|maximum context|too (?:long|many tokens|large)|token limit|exceed/i.test(
    read?.bytes.toString() ?? "",
  );

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new TransportError("aborted", "The client left."));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}
