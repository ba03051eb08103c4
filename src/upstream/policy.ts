/**
 * The URL policy for everything outside the process: http(s) only, nothing secret in the URL, never a cloud's metadata
 * service or a link-local address. Loopback and LAN are allowed: that is where local model servers live.
 */
import ipaddr from "ipaddr.js";
import { AppError } from "../error.ts";

/** Metadata services outside the link-local ranges, and the names they answer to. */
const METADATA_ADDRESSES = new Set([
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16",
  "fd00:ec2::254",
  "fd20:ce::254",
]);
const METADATA_NAMES =
  /^(?:metadata|metadata\.google\.internal|metadata\.goog|instance-data|instance-data\.ec2\.internal|metadata\.tencentyun\.com)\.?$/i;

function refuse(message: string): AppError {
  return new AppError("url_refused", `baseUrl: ${message}`, {
    param: "baseUrl",
    details: [{ field: "baseUrl", message }],
  });
}

/** An address as policy sees it: IPv4 inside IPv6 (mapped, 6to4, NAT64) is judged as the IPv4 it reaches. */
function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  const bare = text.replace(/^\[|\]$/g, "").replace(/%.*$/, "");
  if (!ipaddr.isValid(bare)) return null;
  const address = ipaddr.parse(bare);
  if (!(address instanceof ipaddr.IPv6)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  const { parts } = address;
  const inside = (high: number, low: number) => new ipaddr.IPv4([high >> 8, high & 255, low >> 8, low & 255]);
  if (parts[0] === 0x2002) return inside(parts[1]!, parts[2]!);
  if (parts[0] === 0x64 && parts[1] === 0xff9b) return inside(parts[6]!, parts[7]!);
  if (parts.slice(0, 6).every((part) => part === 0) && (parts[6] !== 0 || parts[7]! > 1))
    return inside(parts[6]!, parts[7]!);
  return address;
}

/** Why an address is not connected to, or null when it may be. */
export function addressProblem(text: string): string | null {
  const address = parseAddress(text);
  if (!address) return `${text} is not an address`;
  if (METADATA_ADDRESSES.has(address.toString()) || METADATA_ADDRESSES.has(address.toNormalizedString())) {
    return "it is a cloud metadata address";
  }
  switch (address.range()) {
    case "linkLocal":
      return "it is a link-local address";
    case "multicast":
    case "broadcast":
      return "it is a multicast or broadcast address";
    case "unspecified":
      return "it is not an address of a server; write 127.0.0.1 for this machine";
    default:
      return null;
  }
}

/** True for loopback, LAN and names without a dot or under `.local`, `.lan`, `.internal`, `.home.arpa`. */
export function isPrivateHost(host: string): boolean {
  const address = parseAddress(host);
  if (address) return ["loopback", "private", "uniqueLocal", "carrierGradeNat"].includes(address.range());
  const name = host.toLowerCase().replace(/\.$/, "");
  return !name.includes(".") || /\.(?:localhost|local|lan|internal|home\.arpa)$/.test(name);
}

/** The host of a URL without brackets. */
export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}

/**
 * Checks a base URL as a person typed it and gives it in one form: no trailing slash, no endpoint path, ending in its
 * version segment (`/v1` where it has none). Throws `url_refused`. What only DNS can tell is checked at connect.
 */
export function resolveBaseUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    throw refuse("is not a URL; write for example http://127.0.0.1:11434/v1");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw refuse("must begin with http:// or https://");
  if (url.username || url.password) throw refuse("must not contain a user name or password; use apiKey");
  if (url.search) throw refuse("must not contain a query");
  if (url.hash) throw refuse("must not contain a fragment");
  if (METADATA_NAMES.test(url.hostname)) throw refuse("is refused: it is a cloud metadata address");
  if (parseAddress(url.hostname)) {
    const problem = addressProblem(url.hostname);
    if (problem) throw refuse(`is refused: ${problem}`);
  }
  const path = url.pathname
    .replace(/\/{2,}/g, "/")
    .replace(/\/+$/, "")
    .replace(/\/(?:chat\/completions|completions|responses|messages|embeddings|models)$/i, "");
  // A version segment anywhere in the path is the server's own choice (`/v1`, `/api/v3`, `/v1beta/openai`).
  const versioned = /\/v\d+[a-z0-9]*(?:\/|$)/i.test(path);
  return `${url.protocol}//${url.host}${path}${versioned ? "" : "/v1"}`;
}
