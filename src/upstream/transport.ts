/** Pooled TCP and TLS connections to providers, the only place that opens any. No cap on requests in flight. */
import type { Socket } from "bun";
import { createClock } from "./clock.ts";
import { createDial } from "./dial.ts";
import type { Resolver } from "./dial.ts";
import { TransportError } from "./errors.ts";
import { connected, ended, flush, lost, received, roundTrip } from "./roundtrip.ts";
import type { Connection, Exchange, Sink, WireRequest } from "./roundtrip.ts";
import type { Target } from "./target.ts";

export interface Transport {
  request(request: WireRequest, sink: Sink): Exchange;
  /** Closes idle connections. */
  close(): void;
}

/** An idle connection is kept this long: below the shortest common keep-alive of servers behind balancers. */
const KEEP_MS = 15_000;
const MAX_IDLE_PER_ORIGIN = 256;

export function createTransport(options: { resolve?: Resolver; ca?: string } = {}): Transport {
  const dial = createDial(options.resolve);
  const clock = createClock();
  const idle = new Map<string, Connection[]>();
  let sweep: ReturnType<typeof setTimeout> | null = null;

  const handlers = {
    open(socket: Socket<Connection>) {
      const connection = socket.data;
      connection.socket = socket;
      socket.setNoDelay(true);
      if (!connection.job) socket.terminate();
      else if (!connection.origin.startsWith("https:")) connected(connection);
    },
    handshake(socket: Socket<Connection>, success: boolean, problem: Error | null) {
      if (success && !problem) connected(socket.data);
      else {
        lost(socket.data, new TransportError("connect", "The provider's TLS certificate is not trusted."));
        socket.terminate();
      }
    },
    data(socket: Socket<Connection>, bytes: Buffer) {
      received(socket.data, bytes);
    },
    drain(socket: Socket<Connection>) {
      flush(socket.data);
    },
    end(socket: Socket<Connection>) {
      forget(socket.data);
      ended(socket.data);
      socket.end();
    },
    close(socket: Socket<Connection>) {
      const connection = socket.data;
      connection.socket = null;
      forget(connection);
      connection.drained?.();
      ended(connection);
      lost(connection, new TransportError("closed", "The provider closed the connection."));
    },
    error(socket: Socket<Connection>) {
      lost(socket.data, new TransportError("closed", "The connection to the provider broke."));
    },
    connectError() {
      // The promise of Bun.connect rejects with the same.
    },
  };

  function forget(connection: Connection): void {
    const list = idle.get(connection.origin);
    const at = list?.indexOf(connection) ?? -1;
    if (list && at >= 0) list.splice(at, 1);
    if (list?.length === 0) idle.delete(connection.origin);
  }

  function take(origin: string): Connection | null {
    const list = idle.get(origin);
    const connection = list?.pop();
    if (list?.length === 0) idle.delete(origin);
    if (!connection?.socket) return null;
    connection.reused = true;
    return connection;
  }

  function keep(connection: Connection): void {
    const list = idle.get(connection.origin) ?? [];
    if (list.length >= MAX_IDLE_PER_ORIGIN) return void connection.socket?.end();
    connection.idleSince = performance.now();
    list.push(connection);
    idle.set(connection.origin, list);
    sweep ??= setTimeout(sweepIdle, KEEP_MS);
    sweep.unref();
  }

  function sweepIdle(): void {
    sweep = null;
    const now = performance.now();
    for (const connection of [...idle.values()].flat()) {
      if (now - connection.idleSince < KEEP_MS) continue;
      forget(connection);
      connection.socket?.end();
    }
    if (idle.size > 0) {
      sweep = setTimeout(sweepIdle, KEEP_MS / 3);
      sweep.unref();
    }
  }

  /** Dials the addresses of a host in turn until one connects. */
  async function connect(connection: Connection, target: Target): Promise<void> {
    const { hostname, port, secure } = target;
    const addresses = await dial(hostname);
    for (const address of addresses) {
      if (!connection.job) return;
      try {
        await Bun.connect<Connection>({
          hostname: address,
          port,
          data: connection,
          socket: handlers,
          ...(secure ? { tls: { serverName: hostname, ...(options.ca ? { ca: options.ca } : {}) } } : {}),
        });
        return;
      } catch {
        if (address === addresses.at(-1))
          throw new TransportError("connect", "The provider could not be reached.");
      }
    }
  }

  return {
    request(request, sink) {
      return roundTrip(request, sink, { take, keep, connect, clock });
    },
    close() {
      for (const connection of [...idle.values()].flat()) connection.socket?.end();
      idle.clear();
      if (sweep) clearTimeout(sweep);
      sweep = null;
    },
  };
}
