// A reverse proxy on loopback that stands between the product and any HTTP server, and breaks it on demand:
// down (connections refused), slow, or answering with a status of its own. The address stays the same throughout.

export interface Fault {
  /** Only requests that this accepts; all without it. */
  when?: (method: string, path: string, body: string) => boolean;
  /** Answer this instead of asking the server. */
  status?: number;
  body?: string;
  headers?: Record<string, string>;
  /** Wait so long (milliseconds) before answering. */
  delay?: number;
  /** Let the server do the work, and lose its answer as a gateway in between does. */
  loseAnswer?: boolean;
  /** How often it happens; for ever without it. */
  times?: number;
}

export interface Flaky {
  url: string;
  /** Requests that arrived, faulty ones included. */
  seen: { method: string; path: string; headers: Headers }[];
  fault(fault: Fault): void;
  /** Ends every fault, and revives. */
  heal(): void;
  /** Refuses connections until revive(). */
  kill(): Promise<void>;
  revive(): void;
  stop(): Promise<void>;
}

export function startFlaky(target: string): Flaky {
  let faults: Fault[] = [];
  const seen: Flaky["seen"] = [];
  const base = new URL(target);

  const fetchTarget = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    const headers = new Headers(request.headers);
    headers.delete("host");
    const body = request.method === "GET" ? undefined : await request.arrayBuffer();
    const answer = await fetch(new URL(url.pathname + url.search, base), {
      method: request.method,
      headers,
      ...(body && body.byteLength > 0 ? { body } : {}),
      redirect: "manual",
      // The answer goes on as it came, with the header that names its compression.
      decompress: false,
    });
    return new Response(answer.status === 204 ? null : await answer.arrayBuffer(), {
      status: answer.status,
      headers: answer.headers,
    });
  };

  const serve = (port: number): ReturnType<typeof Bun.serve> =>
    Bun.serve({
      hostname: "127.0.0.1",
      port,
      idleTimeout: 30,
      async fetch(request) {
        const url = new URL(request.url);
        seen.push({ method: request.method, path: url.pathname + url.search, headers: request.headers });
        const text = faults.some((f) => f.when) ? await request.clone().text() : "";
        const fault = faults.find(
          (f) => (f.times ?? 1) > 0 && (f.when?.(request.method, url.pathname, text) ?? true),
        );
        if (fault) {
          if (fault.times !== undefined) fault.times--;
          if (fault.delay !== undefined) await Bun.sleep(fault.delay);
          if (fault.status !== undefined)
            return new Response(fault.body ?? "", {
              status: fault.status,
              ...(fault.headers ? { headers: fault.headers } : {}),
            });
          if (fault.loseAnswer) {
            await fetchTarget(request);
            return new Response(null, { status: 502 });
          }
        }
        return fetchTarget(request);
      },
      error: () => new Response(null, { status: 502 }),
    });

  let server = serve(0);
  const port = server.port ?? 0;
  let dead = false;
  const revive = (): void => {
    if (dead) server = serve(port);
    dead = false;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    fault: (fault) => {
      faults.push(fault);
    },
    heal: () => {
      faults = [];
      revive();
    },
    kill: () => {
      dead = true;
      return server.stop(true);
    },
    revive,
    stop: () => server.stop(true),
  };
}
