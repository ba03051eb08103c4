/** One call to a provider as a promise of its head, with the body to be read whole or followed. */
import type { TransportError } from "./errors.ts";
import type { Head } from "./http1.ts";
import type { Exchange, Sink, WireRequest } from "./roundtrip.ts";
import type { Transport } from "./transport.ts";

export interface BodySink {
  data(chunk: Buffer): void;
  end(): void;
  fail(error: TransportError): void;
}

export interface Answer {
  status: number;
  headers: [name: string, value: string][];
  header(name: string): string | null;
  /** The whole body when it ends within `limit` bytes; else what came so far, and `follow` gives the rest. */
  read(limit: number): Promise<{ bytes: Buffer; whole: boolean }>;
  /** Hands over what has come and whatever comes. Once, and not while `read` waits. */
  follow(sink: BodySink): void;
  pause(): void;
  resume(): void;
  abort(): void;
}

/** Held before anyone follows; beyond this the provider has to wait. */
const HELD = 256 * 1024;

/** Resolves with the head; rejects with a TransportError when there is none. */
export function call(transport: Transport, request: WireRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const incoming = new Incoming(resolve, reject);
    incoming.exchange = transport.request(request, incoming);
  });
}

/** An answer that comes over the wire: heard from on one side, asked on the other. */
class Incoming implements Answer, Sink {
  status = 0;
  headers: Head["headers"] = [];
  exchange: Exchange | null = null;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: TransportError) => void;
  #sink: BodySink | null = null;
  #headed = false;
  #ended = false;
  #failed: TransportError | null = null;
  #held: Buffer[] = [];
  #size = 0;
  #paused = false;
  #notify: (() => void) | null = null;

  constructor(resolve: (answer: Answer) => void, reject: (error: TransportError) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  head({ status, headers }: Head): void {
    this.#headed = true;
    this.status = status;
    this.headers = headers;
    this.#resolve(this);
  }

  data(chunk: Buffer): void {
    if (this.#sink) return this.#sink.data(chunk);
    this.#held.push(chunk);
    this.#size += chunk.length;
    if (this.#size >= HELD) {
      this.#paused = true;
      this.exchange?.pause();
    }
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    if (this.#sink) this.#sink.end();
    else this.#wake();
  }

  fail(error: TransportError): void {
    this.#failed = error;
    if (!this.#headed) this.#reject(error);
    else if (this.#sink) this.#sink.fail(error);
    else this.#wake();
  }

  header(name: string): string | null {
    for (const [known, value] of this.headers) if (known === name) return value;
    return null;
  }

  async read(limit: number): Promise<{ bytes: Buffer; whole: boolean }> {
    while (!this.#ended && !this.#failed && this.#size < limit) {
      if (this.#paused) this.#goOn();
      await new Promise<void>((wake) => {
        this.#notify = wake;
      });
    }
    if (this.#failed) throw this.#failed;
    const bytes = this.#held.length === 1 ? this.#held[0]! : Buffer.concat(this.#held);
    this.#held = [];
    this.#size = 0;
    return { bytes, whole: this.#ended };
  }

  follow(next: BodySink): void {
    this.#sink = next;
    for (const chunk of this.#held) next.data(chunk);
    this.#held = [];
    this.#size = 0;
    if (this.#failed) next.fail(this.#failed);
    else if (this.#ended) next.end();
    else if (this.#paused) this.#goOn();
  }

  pause(): void {
    this.exchange?.pause();
  }

  resume(): void {
    this.exchange?.resume();
  }

  abort(): void {
    this.exchange?.abort();
  }

  #goOn(): void {
    this.#paused = false;
    this.exchange?.resume();
  }

  #wake(): void {
    const waiting = this.#notify;
    this.#notify = null;
    waiting?.();
  }
}
