/** What can go wrong between us and an upstream. Messages are for clients: no address, no text of the upstream. */

export type TransportKind =
  /** No connection: refused, unreachable, no such host, TLS not trusted. */
  | "connect"
  | "connect-timeout"
  | "first-byte-timeout"
  | "idle-timeout"
  /** The connection ended before the answer was whole. */
  | "closed"
  /** Not HTTP/1.1 as it should be. */
  | "protocol"
  | "policy"
  /** Our client left. */
  | "aborted";

export class TransportError extends Error {
  readonly kind: TransportKind;
  constructor(kind: TransportKind, message: string) {
    super(message);
    this.name = "TransportError";
    this.kind = kind;
  }
}

/** Timeouts are 504, the rest 502. */
export function isTimeout(kind: TransportKind): boolean {
  return kind === "connect-timeout" || kind === "first-byte-timeout" || kind === "idle-timeout";
}
