/** MCP over standard input and output, for one caller. */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";
import { serveStdio as serve, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { Readable, Writable } from "node:stream";
import { createMcpServer, type McpDeps } from "./server.ts";
import type { McpCaller } from "./tools.ts";

export type StdioStreams = { stdin: ReadableStream<Uint8Array>; write: (text: string) => void };

/** How long the answers to what was asked before the input ended are waited for. */
const LAST_ANSWERS_MS = 10_000;

/** Serves until the input ends, with what was asked before answered, or `ended` resolves. `caller` is asked at every call, so that a revoked key ends at once. */
export async function serveStdio(
  deps: McpDeps,
  caller: () => McpCaller,
  { stdin, write }: StdioStreams,
  ended: Promise<void>,
): Promise<void> {
  const open = createUnanswered();
  const input = Readable.from(buffers(stdin, () => Promise.race([open.none(), ended])));
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      write(chunk.toString());
      done();
    },
  });
  const inputEnded = new Promise<void>((resolve) => {
    input.once("end", resolve);
    input.once("error", () => resolve());
  });
  const handle = serve(() => createMcpServer(deps, caller), {
    transport: counted(new StdioServerTransport(input, output), open),
  });
  await Promise.race([inputEnded, ended]);
  await handle.close();
}

/** The SDK reads Buffers, and answers nothing more once they end: a script pipes its messages in and reads what comes. */
async function* buffers(
  stream: ReadableStream<Uint8Array>,
  beforeEnd: () => Promise<void>,
): AsyncGenerator<Buffer> {
  for await (const chunk of stream) yield Buffer.from(chunk);
  await beforeEnd();
}

type Unanswered = ReturnType<typeof createUnanswered>;

/** Which requests have no answer yet. */
function createUnanswered() {
  const ids = new Set<unknown>();
  let changed = () => {};

  function answered(id: unknown): void {
    ids.delete(id);
    changed();
  }

  return {
    received(message: JSONRPCMessage): void {
      if (!("method" in message)) return;
      // A subscription is open as long as the connection; what is cancelled gets no answer.
      if ("id" in message && message.method !== "subscriptions/listen") ids.add(message.id);
      if (message.method === "notifications/cancelled") answered(message.params?.["requestId"]);
    },
    sent(message: JSONRPCMessage): void {
      if ("id" in message && !("method" in message)) answered(message.id);
    },
    /** Resolves when there are none, or after a while. */
    async none(): Promise<void> {
      // What was just read is handed on first.
      await new Promise((resolve) => setImmediate(resolve));
      if (ids.size === 0) return;
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, LAST_ANSWERS_MS);
        changed = () => {
          if (ids.size > 0) return;
          clearTimeout(late);
          resolve();
        };
      });
    },
  };
}

/** The same transport, of whose messages `open` hears. */
function counted(inner: StdioServerTransport, open: Unanswered): Transport {
  const outer: Transport = {
    async start() {
      inner.onclose = () => outer.onclose?.();
      inner.onerror = (error) => outer.onerror?.(error);
      inner.onmessage = (message) => {
        open.received(message);
        outer.onmessage?.(message);
      };
      await inner.start();
    },
    async send(message) {
      await inner.send(message);
      open.sent(message);
    },
    close: () => inner.close(),
  };
  return outer;
}
