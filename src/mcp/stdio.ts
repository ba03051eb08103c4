/** MCP over standard input and output, for one caller. */
import { serveStdio as serve, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { Readable, Writable } from "node:stream";
import { createMcpServer, type McpDeps } from "./server.ts";
import type { McpCaller } from "./tools.ts";

export type StdioStreams = { stdin: ReadableStream<Uint8Array>; write: (text: string) => void };

/** Serves until the input ends or `ended` resolves. `caller` is asked at every call, so that a revoked key ends at once. */
export async function serveStdio(
  deps: McpDeps,
  caller: () => McpCaller,
  { stdin, write }: StdioStreams,
  ended: Promise<void>,
): Promise<void> {
  const input = Readable.from(buffers(stdin));
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
    transport: new StdioServerTransport(input, output),
  });
  await Promise.race([inputEnded, ended]);
  await handle.close();
}

/** The SDK reads Buffers. */
async function* buffers(stream: ReadableStream<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const chunk of stream) yield Buffer.from(chunk);
}
