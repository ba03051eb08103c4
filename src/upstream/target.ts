/** Where a request goes, taken apart once and not on every request. */

export interface Target {
  /** Scheme, host and port: what connections are pooled by. */
  origin: string;
  secure: boolean;
  /** To resolve and to check the certificate against; without brackets. */
  hostname: string;
  port: number;
  /** The header `host`. */
  host: string;
  /** Path and query, as it stands in the request line. */
  path: string;
}

const MOST = 2000;
const known = new Map<string, Target>();

/** The target of an http(s) URL. Throws for anything else. */
export function targetOf(url: string): Target {
  let target = known.get(url);
  if (!target) {
    const { protocol, hostname, port, host, origin, pathname, search } = new URL(url);
    const secure = protocol === "https:";
    target = {
      origin,
      secure,
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port) || (secure ? 443 : 80),
      host,
      path: pathname + search,
    };
    if (known.size >= MOST) known.clear();
    known.set(url, target);
  }
  return target;
}
