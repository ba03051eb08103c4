/**
 * One HTTP/1.1 exchange: sends a request over a connection of the pool, hands the answer to a sink as it comes, and
 * watches the time. A signal and timeouts are mandatory by type.
 */
import type { Socket } from "bun";
import type { Clock, Watched } from "./clock.ts";
import { TransportError } from "./errors.ts";
import type { TransportKind } from "./errors.ts";
import { createParser } from "./http1.ts";
import type { Head, Parser } from "./http1.ts";
import type { Target } from "./target.ts";

export interface Timeouts {
  connectMs: number;
  firstByteMs: number;
  idleMs: number;
}

export interface WireRequest {
  /** Its host is resolved, checked and dialled by address. */
  target: Target;
  method: string;
  /** Without host, content-length, transfer-encoding and connection, which are made here. */
  headers: [name: string, value: string][];
  /** A stream is sent as it comes, with back-pressure. */
  body: Buffer | ReadableStream<Uint8Array> | null;
  /** Length of a streamed body where it is known. */
  bodyLength?: number | undefined;
  timeouts: Timeouts;
  signal: AbortSignal;
}

/** Gets the answer. `fail` comes at most once, also after `head`; nothing follows `end` or `fail`. */
export interface Sink {
  head(head: Head): void;
  data(chunk: Buffer): void;
  end(): void;
  fail(error: TransportError): void;
}

export interface Exchange {
  pause(): void;
  resume(): void;
  /** Stops at once and closes the connection; the sink hears nothing more. */
  abort(): void;
}

/** A connection and the exchange that it carries now. */
export interface Connection {
  socket: Socket<Connection> | null;
  origin: string;
  job: Job | null;
  /** Reads one answer after the other. */
  parser: Parser;
  /** Bytes that did not fit into the socket's buffer. */
  unsent: Buffer | null;
  drained: (() => void) | null;
  reused: boolean;
  idleSince: number;
}

/** One request on its way, over the connection it has now. */
interface Job extends Watched {
  request: WireRequest;
  sink: Sink;
  pool: Pool;
  connection: Connection | null;
  phase: Phase;
  /** Milliseconds for this phase; activity (`touched`) moves its end. */
  limit: number;
  touched: number;
  done: boolean;
  /** The whole request has been written. */
  sent: boolean;
  /** Bytes have come on this connection. */
  answered: boolean;
  paused: boolean;
  onAbort: () => void;
}

interface Pool {
  take(origin: string): Connection | null;
  keep(connection: Connection): void;
  connect(connection: Connection, target: Target): Promise<void>;
  clock: Clock;
}

type Phase = "connect" | "first-byte" | "body";

const expired: Record<Phase, [TransportKind, string]> = {
  connect: ["connect-timeout", "The provider did not accept the connection in time."],
  "first-byte": ["first-byte-timeout", "The provider did not answer in time."],
  body: ["idle-timeout", "The provider stopped in the middle of its answer."],
};

export function roundTrip(request: WireRequest, sink: Sink, pool: Pool): Exchange {
  const { signal, timeouts } = request;
  const job: Job = {
    request,
    sink,
    pool,
    connection: null,
    phase: "connect",
    limit: timeouts.connectMs,
    touched: 0,
    done: false,
    sent: false,
    answered: false,
    paused: false,
    onAbort: () => fail(job, new TransportError("aborted", "The client left.")),
    check(now) {
      // A reader that is behind is our client's pace, not the upstream's.
      if (job.paused) job.touched = now;
      else if (now - job.touched >= job.limit) fail(job, new TransportError(...expired[job.phase]));
    },
  };
  signal.addEventListener("abort", job.onAbort, { once: true });
  if (signal.aborted) queueMicrotask(job.onAbort);
  else {
    pool.clock.add(job);
    start(job, false);
  }
  return {
    pause() {
      if (job.done || job.paused) return;
      job.paused = true;
      job.connection?.socket?.pause();
    },
    resume() {
      if (!job.paused) return;
      job.paused = false;
      job.touched = performance.now();
      job.connection?.socket?.resume();
    },
    abort() {
      if (job.done) return;
      finish(job);
      drop(job);
    },
  };
}

function finish(job: Job): void {
  job.done = true;
  job.pool.clock.remove(job);
  job.request.signal.removeEventListener("abort", job.onAbort);
}

function drop({ connection }: Job): void {
  if (!connection) return;
  connection.job = null;
  connection.socket?.terminate();
  connection.drained?.();
}

function fail(job: Job, error: TransportError): void {
  if (job.done) return;
  finish(job);
  drop(job);
  job.sink.fail(error);
}

/** A phase begins; activity moves its end. */
function arm(job: Job, phase: Phase, ms: number): void {
  job.phase = phase;
  job.limit = ms;
  job.touched = performance.now();
}

function start(job: Job, fresh: boolean): void {
  const { target, method, timeouts } = job.request;
  const known = fresh ? null : job.pool.take(target.origin);
  const connection = known ?? newConnection(target.origin);
  job.connection = connection;
  job.answered = false;
  connection.job = job;
  connection.parser.begin(method);
  if (known) return send(job, connection);
  arm(job, "connect", timeouts.connectMs);
  job.pool.connect(connection, target).catch((error: unknown) => {
    if (connection !== job.connection) return;
    fail(
      job,
      error instanceof TransportError
        ? error
        : new TransportError("connect", "The provider could not be reached."),
    );
  });
}

/** The connection is there (and trusted): the request goes out. */
export function connected(connection: Connection): void {
  if (connection.job) send(connection.job, connection);
}

/** Bytes have come. */
export function received(connection: Connection, bytes: Buffer): void {
  const { job } = connection;
  if (!job) {
    connection.socket?.terminate();
    return;
  }
  job.answered = true;
  job.touched = performance.now();
  connection.parser.feed(bytes);
}

/** The provider sends nothing more. */
export function ended(connection: Connection): void {
  if (connection.job) connection.parser.eof();
}

export function lost(connection: Connection, error: TransportError): void {
  const { job } = connection;
  if (!job || job.done) return;
  // A pooled connection that the server closed meanwhile says nothing about the request: it goes out once more.
  if (connection.reused && !job.answered && !(job.request.body instanceof ReadableStream)) {
    connection.job = null;
    connection.socket?.terminate();
    start(job, true);
  } else fail(job, error);
}

function parserOf(connection: Connection): Parser {
  return createParser({
    head(head) {
      const { job } = connection;
      if (!job) return;
      arm(job, "body", job.request.timeouts.idleMs);
      job.sink.head(head);
    },
    data(chunk) {
      connection.job?.sink.data(chunk);
    },
    end(reusable) {
      const { job, socket } = connection;
      if (!job) return;
      finish(job);
      connection.job = null;
      if (reusable && job.sent && socket && !connection.unsent) {
        if (job.paused) socket.resume();
        job.pool.keep(connection);
      } else socket?.end();
      job.sink.end();
    },
    fail(problem, cut) {
      lost(connection, new TransportError(cut ? "closed" : "protocol", problem));
    },
  });
}

function send(job: Job, connection: Connection): void {
  const { target, method, headers, body, bodyLength, timeouts } = job.request;
  arm(job, "first-byte", timeouts.firstByteMs);
  let head = `${method} ${target.path} HTTP/1.1\r\nhost: ${target.host}\r\n`;
  for (const [name, value] of headers) head += `${name}: ${value}\r\n`;
  if (body instanceof ReadableStream) {
    const chunked = bodyLength === undefined;
    head += chunked ? "transfer-encoding: chunked\r\n\r\n" : `content-length: ${bodyLength}\r\n\r\n`;
    write(connection, Buffer.from(head, "latin1"));
    pump(job, connection, body, chunked).catch(job.onAbort);
    return;
  }
  if (body !== null || method !== "GET") head += `content-length: ${body?.length ?? 0}\r\n`;
  head += "\r\n";
  const bytes = Buffer.allocUnsafe(head.length + (body?.length ?? 0));
  bytes.write(head, 0, "latin1");
  if (body) bytes.set(body, head.length);
  job.sent = true;
  write(connection, bytes);
}

/** Sends a streamed body piece by piece, waiting whenever the socket is full. */
async function pump(
  job: Job,
  connection: Connection,
  stream: ReadableStream<Uint8Array>,
  chunked: boolean,
): Promise<void> {
  const reader = stream.getReader();
  for (;;) {
    const { done: whole, value } = await reader.read();
    if (job.done) return void reader.cancel().catch(() => {});
    job.touched = performance.now();
    if (whole) break;
    if (value.length === 0) continue;
    if (chunked) write(connection, Buffer.from(`${value.length.toString(16)}\r\n`, "latin1"));
    write(connection, Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    if (chunked) write(connection, Buffer.from("\r\n", "latin1"));
    while (connection.unsent && connection.socket) {
      await new Promise<void>((resolve) => {
        connection.drained = resolve;
      });
      job.touched = performance.now();
    }
  }
  if (chunked) write(connection, Buffer.from("0\r\n\r\n", "latin1"));
  job.sent = true;
}

function newConnection(origin: string): Connection {
  const connection: Omit<Connection, "parser"> & { parser?: Parser } = {
    socket: null,
    origin,
    job: null,
    unsent: null,
    drained: null,
    reused: false,
    idleSince: 0,
  };
  const whole = connection as Connection;
  whole.parser = parserOf(whole);
  return whole;
}

function write(connection: Connection, bytes: Buffer): void {
  const { socket } = connection;
  if (!socket) return;
  if (connection.unsent) {
    connection.unsent = Buffer.concat([connection.unsent, bytes]);
    return;
  }
  const sent = Math.max(0, socket.write(bytes));
  if (sent < bytes.length) connection.unsent = bytes.subarray(sent);
}

/** Sends what had to wait, now that the socket has room. */
export function flush(connection: Connection): void {
  const { unsent, socket } = connection;
  if (unsent && socket) {
    const sent = Math.max(0, socket.write(unsent));
    connection.unsent = sent < unsent.length ? unsent.subarray(sent) : null;
  }
  if (!connection.unsent) {
    const resume = connection.drained;
    connection.drained = null;
    resume?.();
  }
}
