/** The load of `bench:proxy`: keep-alive connections over raw sockets, so that the client is not what is measured. */
import type { Socket } from "bun";

export interface Target {
  port: number;
  path: string;
  headers: Record<string, string>;
  /** The body of request number `n`. */
  body: (n: number) => string;
}

function requestBytes(target: Target, n: number): Buffer {
  const body = target.body(n);
  const headers = Object.entries({
    host: `127.0.0.1:${target.port}`,
    "content-type": "application/json",
    ...target.headers,
    "content-length": String(Buffer.byteLength(body)),
  });
  return Buffer.from(
    `POST ${target.path} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`,
  );
}

/** Milliseconds of each of `total` JSON requests by `clients` connections, and requests a second. */
export async function runJson(
  target: Target,
  clients: number,
  total: number,
  first = 0,
): Promise<{ ms: number[]; perSecond: number }> {
  const ms: number[] = [];
  let next = first;
  const end = first + total;
  const started = performance.now();
  await Promise.all(
    Array.from(
      { length: clients },
      () =>
        new Promise<void>((resolve, reject) => {
          let sent = 0;
          let text = "";
          let left = -1;
          const go = (socket: Socket) => {
            if (next >= end) {
              socket.end();
              resolve();
              return;
            }
            text = "";
            left = -1;
            const bytes = requestBytes(target, next++);
            sent = performance.now();
            socket.write(bytes);
          };
          Bun.connect({
            hostname: "127.0.0.1",
            port: target.port,
            socket: {
              open: go,
              data(socket, bytes) {
                if (left >= 0) left -= bytes.length;
                else {
                  text += bytes.toString("latin1");
                  const head = text.indexOf("\r\n\r\n");
                  if (head < 0) return;
                  if (!text.startsWith("HTTP/1.1 200")) return reject(new Error(text));
                  const length = /content-length: (\d+)/i.exec(text)?.[1];
                  if (length !== undefined) left = Number(length) - (text.length - head - 4);
                  else if (text.endsWith("0\r\n\r\n")) left = 0;
                  else return;
                }
                if (left > 0) return;
                ms.push(performance.now() - sent);
                go(socket);
              },
              error: (_, error) => reject(error),
            },
          }).catch(reject);
        }),
    ),
  );
  return { ms, perSecond: (ms.length / (performance.now() - started)) * 1000 };
}

export interface StreamResult {
  /** From the request to the first event. */
  firstMs: number[];
  /** From an event's sending to its arrival. */
  eventMs: number[];
  /** Between the arrivals of two events of one stream. */
  gapMs: number[];
  /** Streams that got every event and the end. */
  whole: number;
}

const micros = () => Number(process.hrtime.bigint() / 1000n);

/** `clients` streams, each run `rounds` times one after the other. */
export async function runStreams(
  target: Target,
  clients: number,
  rounds: number,
  frames: number,
  staggerMs = 0,
): Promise<StreamResult> {
  const result: StreamResult = { firstMs: [], eventMs: [], gapMs: [], whole: 0 };
  const one = () =>
    new Promise<void>((resolve, reject) => {
      let sent = 0;
      let before = 0;
      let seen = 0;
      let tail = "";
      Bun.connect({
        hostname: "127.0.0.1",
        port: target.port,
        socket: {
          open(socket) {
            sent = micros();
            socket.write(requestBytes(target, 0));
          },
          data(socket, bytes) {
            const at = micros();
            const text = tail + bytes.toString("latin1");
            let from = 0;
            for (const match of text.matchAll(/"t":(\d+),[^\n]*\n\n/g)) {
              seen++;
              from = match.index + match[0].length;
              result.eventMs.push((at - Number(match[1])) / 1000);
              if (seen === 1) result.firstMs.push((at - sent) / 1000);
              else result.gapMs.push((at - before) / 1000);
              before = at;
            }
            tail = text.slice(from);
            if (!tail.endsWith("0\r\n\r\n")) return;
            if (seen === frames) result.whole++;
            socket.end();
            resolve();
          },
          close: () => resolve(),
          error: (_, error) => reject(error),
        },
      }).catch(reject);
    });
  await Promise.all(
    Array.from({ length: clients }, async (_, index) => {
      await Bun.sleep((staggerMs * index) / clients);
      for (let round = 0; round < rounds; round++) await one();
    }),
  );
  return result;
}

/** The value below which this share of them lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
