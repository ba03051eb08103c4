/**
 * One HTTP/1.1 exchange: sends a request over a connection of the pool, hands the answer to a sink as it comes, and
 * watches the time. A signal and timeouts are mandatory by type.
 */
import type { Socket } from "bun";
import type { Clock } from "./clock.ts";
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
  /** Bytes that did not fit into the socket's buffer. */
  unsent: Buffer | null;
  drained: (() => void) | null;
  reused: boolean;
  idleSince: number;
}

interface Job {
  parser: Parser;
  connected(): void;
  received(): void;
  lost(error: TransportError): void;
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
  const { target, method, headers, body, bodyLength, timeouts, signal } = request;
  const streamed = body instanceof ReadableStream;
  let current: Connection | null = null;
  let phase: Phase = "connect";
  let limit = timeouts.connectMs;
  let touched = performance.now();
  let done = false;
  let sent = false;
  let paused = false;

  const finish = () => {
    done = true;
    pool.clock.remove(watched);
    signal.removeEventListener("abort", onAbort);
  };
  const drop = () => {
    if (!current) return;
    current.job = null;
    current.socket?.terminate();
    current.drained?.();
  };
  const fail = (error: TransportError) => {
    if (done) return;
    finish();
    drop();
    sink.fail(error);
  };
  const onAbort = () => fail(new TransportError("aborted", "The client left."));

  /** A phase begins; activity moves its end. */
  const arm = (next: Phase, ms: number) => {
    phase = next;
    limit = ms;
    touched = performance.now();
  };
  const watched = {
    check(now: number) {
      // A reader that is behind is our client's pace, not the upstream's.
      if (paused) touched = now;
      else if (now - touched >= limit) fail(new TransportError(...expired[phase]));
    },
  };

  const start = (fresh: boolean) => {
    const known = fresh ? null : pool.take(target.origin);
    const connection = known ?? newConnection(target.origin);
    current = connection;
    connection.job = jobOf(connection);
    if (known) return send(connection);
    arm("connect", timeouts.connectMs);
    pool.connect(connection, target).catch((error: unknown) => {
      if (connection !== current) return;
      fail(
        error instanceof TransportError
          ? error
          : new TransportError("connect", "The provider could not be reached."),
      );
    });
  };

  const jobOf = (connection: Connection): Job => {
    let answered = false;
    const lost = (error: TransportError) => {
      if (connection !== current || done) return;
      // A pooled connection that the server closed meanwhile says nothing about the request: it goes out once more.
      if (connection.reused && !answered && !streamed) {
        connection.job = null;
        connection.socket?.terminate();
        start(true);
      } else fail(error);
    };
    const parser = createParser(method, {
      head(head) {
        arm("body", timeouts.idleMs);
        sink.head(head);
      },
      data(chunk) {
        if (!done) sink.data(chunk);
      },
      end(reusable) {
        if (done) return;
        finish();
        connection.job = null;
        const { socket } = connection;
        if (reusable && sent && socket && !connection.unsent) {
          if (paused) socket.resume();
          pool.keep(connection);
        } else socket?.end();
        sink.end();
      },
      fail(problem, cut) {
        lost(new TransportError(cut ? "closed" : "protocol", problem));
      },
    });
    return {
      parser,
      lost,
      connected: () => send(connection),
      received() {
        answered = true;
        touched = performance.now();
      },
    };
  };

  const send = (connection: Connection) => {
    arm("first-byte", timeouts.firstByteMs);
    let head = `${method} ${target.path} HTTP/1.1\r\nhost: ${target.host}\r\n`;
    for (const [name, value] of headers) head += `${name}: ${value}\r\n`;
    if (streamed) {
      const chunked = bodyLength === undefined;
      head += chunked ? "transfer-encoding: chunked\r\n\r\n" : `content-length: ${bodyLength}\r\n\r\n`;
      write(connection, Buffer.from(head, "latin1"));
      pump(connection, body, chunked).catch(onAbort);
      return;
    }
    if (body !== null || method !== "GET") head += `content-length: ${body?.length ?? 0}\r\n`;
    head += "\r\n";
    const bytes = Buffer.allocUnsafe(head.length + (body?.length ?? 0));
    bytes.write(head, 0, "latin1");
    if (body) bytes.set(body, head.length);
    sent = true;
    write(connection, bytes);
  };

  /** Sends a streamed body piece by piece, waiting whenever the socket is full. */
  const pump = async (connection: Connection, stream: ReadableStream<Uint8Array>, chunked: boolean) => {
    const reader = stream.getReader();
    for (;;) {
      const { done: whole, value } = await reader.read();
      if (done) return void reader.cancel().catch(() => {});
      touched = performance.now();
      if (whole) break;
      if (value.length === 0) continue;
      if (chunked) write(connection, Buffer.from(`${value.length.toString(16)}\r\n`, "latin1"));
      write(connection, Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      if (chunked) write(connection, Buffer.from("\r\n", "latin1"));
      while (connection.unsent && connection.socket) {
        await new Promise<void>((resolve) => {
          connection.drained = resolve;
        });
        touched = performance.now();
      }
    }
    if (chunked) write(connection, Buffer.from("0\r\n\r\n", "latin1"));
    sent = true;
  };

  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) queueMicrotask(onAbort);
  else {
    pool.clock.add(watched);
    start(false);
  }

  return {
    pause() {
      if (done || paused) return;
      paused = true;
      current?.socket?.pause();
    },
    resume() {
      if (!paused) return;
      paused = false;
      touched = performance.now();
      current?.socket?.resume();
    },
    abort() {
      if (done) return;
      finish();
      drop();
    },
  };
}

function newConnection(origin: string): Connection {
  return { socket: null, origin, job: null, unsent: null, drained: null, reused: false, idleSince: 0 };
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
