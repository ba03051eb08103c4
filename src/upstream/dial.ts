/** From a host name to addresses that the policy allows. What DNS says now is what is dialled, so it cannot change in between. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { TransportError } from "./errors.ts";
import { addressProblem } from "./policy.ts";

export type Resolver = (host: string) => Promise<string[]>;

const system: Resolver = async (host) => (await lookup(host, { all: true })).map((entry) => entry.address);

/** How long an answer of DNS is believed, in milliseconds. */
const TTL_MS = 30_000;

export type Dial = (host: string) => string[] | Promise<string[]>;

/** Gives the addresses of a host, at once when they are known; rejects when one is refused or there is none. */
export function createDial(resolve: Resolver = system, now: () => number = Date.now): Dial {
  const known = new Map<string, { addresses: string[]; until: number }>();
  return (host) => {
    const cached = known.get(host);
    if (isIP(host)) {
      if (cached) return cached.addresses;
      known.set(host, { addresses: allow([host]), until: Number.POSITIVE_INFINITY });
      return [host];
    }
    if (cached && cached.until > now()) return cached.addresses;
    return resolve(host).then(
      (found) => {
        const addresses = allow([...new Set(found)]);
        if (known.size > 1000) known.clear();
        known.set(host, { addresses, until: now() + TTL_MS });
        return addresses;
      },
      () => {
        throw new TransportError("connect", "The provider's host name was not found.");
      },
    );
  };
}

function allow(addresses: string[]): string[] {
  for (const address of addresses) {
    const problem = addressProblem(address);
    if (problem) throw new TransportError("policy", `The provider's address is refused: ${problem}.`);
  }
  if (addresses.length === 0) throw new TransportError("connect", "The provider's host name was not found.");
  return addresses;
}
