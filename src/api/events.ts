/** Server-sent events for work that takes long. */

export type ServerEvent = { event: string; data: unknown };

/** Comments in between, so that nobody takes a quiet stream for a dead one. */
const QUIET_MS = 8000;

/** Sends what the generator gives, and ends with it; a client that leaves ends the generator. Errors become `error`. */
export function eventStream(events: (signal: AbortSignal) => AsyncGenerator<ServerEvent>): Response {
  const left = new AbortController();
  const encoder = new TextEncoder();
  const source = events(left.signal);
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const beat = setInterval(() => {
        // Whoever left while the work was slow is told nothing: writing would throw where nobody catches it.
        if (left.signal.aborted) clearInterval(beat);
        else controller.enqueue(encoder.encode(": working\n\n"));
      }, QUIET_MS);
      const send = ({ event, data }: ServerEvent) =>
        controller.enqueue(encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
      try {
        for await (const event of source) {
          if (left.signal.aborted) return;
          send(event);
        }
      } catch (error) {
        if (!left.signal.aborted) {
          send({
            event: "error",
            data: { message: error instanceof Error ? error.message : "Internal error." },
          });
        }
      } finally {
        clearInterval(beat);
        if (!left.signal.aborted) controller.close();
      }
    },
    cancel() {
      left.abort();
    },
  });
  return new Response(body, {
    headers: {
      "Content-Type": "text/event-stream",
      "Cache-Control": "no-store, no-transform",
      "X-Accel-Buffering": "no",
    },
  });
}

/** Waits, or returns early when the client left. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done);
  });
}
