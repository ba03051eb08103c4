/** Which names in `Host` are this box: anything else is a rebinding attempt and answers 421. */
import { isIP } from "node:net";
import { isLoopback } from "./config.ts";
import type { Config } from "./config.ts";

/**
 * A test of `Host` values. Loopback names, HOST and ALLOWED_HOSTS are accepted; on a server that listens beyond loopback
 * any plain IP address too, since a name that is re-bound is never an address.
 */
export function hostCheck(config: Config): (host: string | null) => boolean {
  const open = !isLoopback(config.HOST);
  const names = new Set([config.HOST, ...config.ALLOWED_HOSTS].map((name) => name.toLowerCase()));
  let last: string | null = null;
  const known = (host: string): boolean => {
    const name = host.toLowerCase().replace(/:\d+$/, "");
    if (isLoopback(name) || names.has(name) || names.has(host.toLowerCase())) return true;
    return open && isIP(name.replace(/^\[|\]$/g, "")) !== 0;
  };
  return (host) => {
    if (host === null) return false;
    // Clients come again and again by one name.
    if (host !== last && !known(host)) return false;
    last = host;
    return true;
  };
}

/** The caller's address and whether it came over TLS; `X-Forwarded-*` counts only from the addresses of TRUST_PROXY. */
export function peerOf(
  request: Request,
  socket: string,
  config: Config,
): { address: string; secure: boolean } {
  const own = config.TLS_CERT !== null;
  if (config.TRUST_PROXY.length === 0) return { address: socket, secure: own };
  if (!config.TRUST_PROXY.includes(socket.replace(/^::ffff:/, ""))) return { address: socket, secure: own };
  const forwarded = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim();
  return {
    address: forwarded || socket,
    secure: own || request.headers.get("x-forwarded-proto") === "https",
  };
}
