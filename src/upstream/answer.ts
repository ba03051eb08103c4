/** One call to a provider as a promise of its head, with the body to be read whole or followed. */
import type { TransportError } from "./errors.ts";
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
    let exchange: Exchange | null = null;
    let sink: BodySink | null = null;
    let headed = false;
    let ended = false;
    let failed: TransportError | null = null;
    let held: Buffer[] = [];
    let size = 0;
    let paused = false;
    let notify: (() => void) | null = null;

    const events: Sink = {
      head({ status, headers }) {
        headed = true;
        resolve({
          status,
          headers,
          header: (name) => headers.find(([known]) => known === name)?.[1] ?? null,
          async read(limit) {
            while (!ended && !failed && size < limit) {
              if (paused) resume();
              await new Promise<void>((wake) => {
                notify = wake;
              });
            }
            if (failed) throw failed;
            const bytes = held.length === 1 ? held[0]! : Buffer.concat(held);
            held = [];
            size = 0;
            return { bytes, whole: ended };
          },
          follow(next) {
            sink = next;
            for (const chunk of held) next.data(chunk);
            held = [];
            size = 0;
            if (failed) next.fail(failed);
            else if (ended) next.end();
            else if (paused) resume();
          },
          pause: () => exchange?.pause(),
          resume: () => exchange?.resume(),
          abort: () => exchange?.abort(),
        });
      },
      data(chunk) {
        if (sink) return sink.data(chunk);
        held.push(chunk);
        size += chunk.length;
        if (size >= HELD) {
          paused = true;
          exchange?.pause();
        }
        wake();
      },
      end() {
        ended = true;
        if (sink) sink.end();
        else wake();
      },
      fail(error) {
        failed = error;
        if (!headed) reject(error);
        else if (sink) sink.fail(error);
        else wake();
      },
    };
    const resume = () => {
      paused = false;
      exchange?.resume();
    };
    const wake = () => {
      const waiting = notify;
      notify = null;
      waiting?.();
    };
    exchange = transport.request(request, events);
  });
}
