/**
 * The hashes by which a conversation is found again. Pure. They cover role and text only, since clients move cache marks,
 * and leave out tools, reasoning and the context wrappers that coding agents add anew each time.
 */
import type { Item } from "./conversation.ts";

/** A user turn and the hash of the conversation up to and including it. */
export interface Turn {
  at: number;
  hash: string;
}

/** Without and with the system messages: these tell apart what else is the same, but some clients put a clock in them. */
export interface HashPair {
  bare: string;
  full: string;
}

/** Text beyond this takes no part in a hash; more of a reply is captured. */
const HASHED = 65_536;

/** 128 bits are plenty for telling one owner's conversations apart. In hexadecimal digits. */
const SHORT = 32;

export interface Hashed {
  turns: Turn[];
  /** How it stood before the last user turn. */
  before: string;
  pair: (bare: string) => HashPair;
  after: (reply: string) => HashPair;
}

/** `system` is the text that stands outside the list. */
export function hashConversation(system: string, items: readonly Item[]): Hashed {
  const chain = new Bun.CryptoHasher("sha256");
  const instructions = new Bun.CryptoHasher("sha256");
  instructions.update(system);
  const turns: Turn[] = [];
  let before = "";
  const last = items.findLast((item) => item.role === "user");
  // The steps of one reply are one text, however its parts were cut into items.
  let said = "";
  for (const item of items) {
    if (item.role === "system") instructions.update(`\0${item.text}`);
    if (item.role === "assistant") said += replyText(item.text);
    if (item.role === "user") {
      say(chain, "assistant", said);
      said = "";
      if (item === last) before = short(chain);
      say(chain, "user", item.own, true);
      turns.push({ at: item.at, hash: short(chain) });
    }
  }
  const systemHash = short(instructions);
  const pair = (bare: string): HashPair => ({
    bare,
    full: Bun.CryptoHasher.hash("sha256", bare + systemHash, "hex").slice(0, SHORT),
  });
  return {
    turns,
    before,
    pair,
    after(reply) {
      const next = chain.copy();
      say(next, "assistant", said + replyText(reply));
      return pair(short(next));
    },
  };
}

/** A pair of hashes for a conversation that the upstream keeps under a name (`previous_response_id`, `conversation`). */
export function namedHash(kind: "response" | "conversation", id: string): string {
  return Bun.CryptoHasher.hash("sha256", `${kind}\0${id}`, "hex").slice(0, SHORT);
}

/** White space takes no part: clients trim texts and join their parts in ways of their own. */
function say(chain: Bun.CryptoHasher, role: string, text: string, marked = false): void {
  if (text === "" && !marked) return;
  chain.update(`${role}\0${marked ? "\0" : ""}`);
  // One unit less with the mark, which counts as well.
  chain.update(dense(text.slice(0, marked ? HASHED - 1 : HASHED)));
  chain.update("\0");
}

/** The bytes of a text without white space (what `\s` means). */
function dense(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte < 0x80) {
      if (byte > 32 || (byte !== 32 && (byte < 9 || byte > 13))) bytes[length++] = byte;
      continue;
    }
    const wide = wideBlank(bytes, at, byte);
    if (wide === 0) bytes[length++] = byte;
    else at += wide - 1;
  }
  return bytes.subarray(0, length);
}

/** The length of the white space outside ASCII that begins at `at`, else 0. */
function wideBlank(bytes: Buffer, at: number, byte: number): number {
  if (byte === 0xc2) return bytes[at + 1] === 0xa0 ? 2 : 0;
  if (byte !== 0xe2 && byte !== 0xe3 && byte !== 0xe1 && byte !== 0xef) return 0;
  const code = ((byte & 0x0f) << 12) | ((bytes[at + 1]! & 0x3f) << 6) | (bytes[at + 2]! & 0x3f);
  const blank =
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000 ||
    code === 0x1680 ||
    code === 0xfeff;
  return blank ? 3 : 0;
}

function short(hasher: Bun.CryptoHasher): string {
  return hasher.copy().digest("hex").slice(0, SHORT);
}

/** Clients drop the thinking of a reply before they send it back. */
function replyText(text: string): string {
  return text.replace(/^\s*<think(?:ing)?>[\s\S]*?<\/think(?:ing)?>/i, "");
}
