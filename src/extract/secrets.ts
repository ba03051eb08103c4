/** Secrets leave a text before it is written anywhere. Synchronous, linear, far below a millisecond for a message. */
import * as rules from "./secret-rules.ts";

/** Stands where a secret stood. */
export const REDACTED = "[redacted]";

/** A text without its secrets, and how many it had. */
export interface Redacted {
  text: string;
  count: number;
}

const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const PUTTY = /Private-Lines: \d+\s/g;
/** None of the rules can match a text without one of these: most texts are read once and returned. */
const TRIGGER =
  /[A-Za-z0-9_\-.+/~]{16}|\d[ -]?\d[ -]?\d[ -]?\d[ -]?\d[ -]?\d[ -]?\d[ -]?\d[ -]?\d[ -]?\d[ -]?\d[ -]?\d|:\/\/|-u |--user|pass|pwd|mdp|pin|cvv|cvc|otp|code|secret|token|key|cred|phrase|mnemonic|kennw|mot|contrase|clave|senha|parola|wachtw|salasana|tunnus|schl|cl[eé]|jeton|llave|ficha|chave|chiave|gettone|sleutel|avain|bearer|basic|密|口令|令牌|验证码|パス|暗証|キー|トークン/i;

/**
 * Replaces API keys, tokens, private keys, passwords, PINs and card numbers by `[redacted]`. Redacting twice changes
 * nothing and counts nothing the second time.
 */
export function redactSecrets(text: string): Redacted {
  if (!TRIGGER.test(text)) return { text, count: 0 };
  let count = 0;
  const hit = (): string => {
    count += 1;
    return REDACTED;
  };
  let out = text;
  if (out.includes("PRIVATE KEY")) out = blocks(out, PRIVATE_KEY, hit);
  if (out.includes("Private-Lines:")) out = blocks(out, PUTTY, hit);
  if (out.includes("://")) {
    out = out.replace(rules.URL_PASSWORD, (whole, head: string, password: string) =>
      rules.PLACEHOLDER.test(password) ? whole : head + hit(),
    );
    out = out.replace(rules.URL_TOKEN, (_, head: string) => head + hit());
  }
  if (/ -u |--user/.test(out)) {
    out = out.replace(rules.USER_PASSWORD, (whole, head: string, password: string) =>
      rules.PLACEHOLDER.test(password) ? whole : head + hit(),
    );
  }
  out = out.replace(rules.TOKEN_RUN, (run) =>
    run.length > 4000 ? longRun(run, hit) : run.replace(rules.TOKEN, hit),
  );
  if (out.includes(":AA")) out = out.replace(rules.TELEGRAM, hit);
  if (out.includes("=")) {
    out = out.replace(rules.QUERY, (whole, head: string, value: string) =>
      rules.PLACEHOLDER.test(value) || (/(?:key|code|sv|sig)=$/i.test(head) && value.length < 12)
        ? whole
        : head + hit(),
    );
  }
  out = out.replace(rules.AUTHORIZATION, (whole, head: string, value: string) =>
    /\d/.test(value) || value.length >= 24 ? head + hit() : whole,
  );
  out = out.replace(rules.CARD, (digits) => (isCard(digits) ? hit() : digits));
  out = keywords(out, hit);
  if (/\b(?:AKIA|ASIA|aws)|secret|\[redacted\]/i.test(out))
    out = out.replace(rules.AWS_SECRET, (run) => (/^[0-9a-f]+$/i.test(run) ? run : hit()));
  return { text: out, count };
}

/** From each begin mark to its end mark; without one, over the lines of base64 that follow. */
function blocks(text: string, begin: RegExp, hit: () => string): string {
  let out = "";
  let at = 0;
  begin.lastIndex = 0;
  for (let match = begin.exec(text); match !== null; match = begin.exec(text)) {
    const end = text.indexOf("-----END ", match.index);
    let to: number;
    if (end !== -1) {
      const close = text.indexOf("-----", end + 9);
      to = close === -1 ? text.length : close + 5;
    } else {
      const body = /(?:[ \t>]*[A-Za-z0-9+/=:\-. \\]{0,100}(?:\n|\\n|$)){1,2000}/y;
      body.lastIndex = match.index + match[0].length;
      to = body.test(text) ? body.lastIndex : text.length;
      to = Math.max(to, match.index + match[0].length);
    }
    out += text.slice(at, match.index) + hit();
    at = to;
    begin.lastIndex = to;
  }
  return out + text.slice(at);
}

/** A run of megabytes (base64 data) is looked at in windows that overlap by more than a token. */
function longRun(run: string, hit: () => string): string {
  let out = "";
  for (let at = 0; at < run.length; at += 4000) out += run.slice(at, at + 4000).replace(rules.TOKEN, hit);
  return out;
}

/** ISO/IEC 7812: 13–19 digits whose Luhn sum is a multiple of ten, and not one digit repeated. */
function isCard(text: string): boolean {
  const digits = text.replace(/[ -]/g, "");
  if (digits.length < 13 || digits.length > 19 || /^(\d)\1+$/.test(digits)) return false;
  let sum = 0;
  for (let at = 0; at < digits.length; at += 1) {
    let digit = digits.charCodeAt(digits.length - 1 - at) - 48;
    if (at % 2 === 1) digit = digit > 4 ? digit * 2 - 9 : digit * 2;
    sum += digit;
  }
  return sum % 10 === 0;
}

/** What stands behind "password", "api key", "PIN" and the like. */
function keywords(text: string, hit: () => string): string {
  let out = "";
  let at = 0;
  rules.KEYWORD.lastIndex = 0;
  for (let match = rules.KEYWORD.exec(text); match !== null; match = rules.KEYWORD.exec(text)) {
    const from = match.index + match[0].length;
    const kind = match[1] !== undefined ? "strong" : match[2] !== undefined ? "key" : "number";
    const found = valueBehind(text, from, kind);
    if (found === null) continue;
    out += text.slice(at, found.start) + hit();
    at = found.end;
    rules.KEYWORD.lastIndex = found.end;
  }
  return at === 0 ? text : out + text.slice(at);
}

interface Span {
  start: number;
  end: number;
}

function valueBehind(text: string, from: number, kind: "strong" | "key" | "number"): Span | null {
  const assigned = matchAt(rules.ASSIGN, text, from);
  if (assigned !== null) {
    const span = valueAt(text, from + assigned.length, kind, true);
    if (span !== null) return span;
  }
  const said = matchAt(rules.PROSE, text, from);
  if (said !== null) return valueAt(text, from + said.length, kind, false);
  // "password hunter2", "PIN 4821", "key 9f86d0…": only what looks the part.
  const blank = matchAt(/[ \t]{1,3}/y, text, from);
  return blank === null ? null : valueAt(text, from + blank.length, kind, false, true);
}

function valueAt(
  text: string,
  from: number,
  kind: "strong" | "key" | "number",
  assigned: boolean,
  bare = false,
): Span | null {
  const quoted = matchAt(rules.QUOTED, text, from);
  if (quoted !== null) {
    const value = quoted.slice(1, -1);
    const fits = kind === "key" ? looksLikeKey(value) : value.trim().length >= 3;
    return fits && !rules.PLACEHOLDER.test(value) ? { start: from + 1, end: from + quoted.length - 1 } : null;
  }
  const run = matchAt(rules.BARE, text, from);
  if (run === null) return null;
  const value = run.replace(/[.!?:…]+$/, "");
  const end = from + value.length;
  if (value.length < 3 || rules.PLACEHOLDER.test(value) || value.startsWith(":")) return null;
  if (kind === "number") return /^\d[\d-]{2,9}$/.test(value) ? { start: from, end } : null;
  if (kind === "key") return looksLikeKey(value) ? { start: from, end } : null;
  if (looksLikePassword(value)) return { start: from, end };
  if (bare || rules.NO_SECRET.test(value)) return null;
  // A plain word is a password only where it closes the statement: "my password is swordfish."
  const after = text.slice(end, end + 3);
  const closes = /^[.!?,;]*(?:\s*$|\s*\n|[.!?,;]\s)/.test(after);
  return (assigned || closes) &&
    value.length >= 4 &&
    !/[(){}<>]/.test(value) &&
    !(assigned && /^[a-z]+[A-Z]|^[a-z_.]+$/.test(value) && !closes)
    ? { start: from, end }
    : null;
}

/** Digits with letters, marks inside, or capitals in the middle of a word. */
function looksLikePassword(value: string): boolean {
  if (value.length < 4) return false;
  if (/^\d{4,}$/.test(value)) return true;
  if (/^(?:https?:|www\.|\/|\.\/|~\/)/.test(value)) return false;
  const letters = /\p{L}/u.test(value);
  if (/\d/.test(value) && letters && !/^v?\d+(?:\.\d+)+$/.test(value)) return true;
  if (/[!@#$%^&*+=?~]/.test(value) && value.length >= 6) return true;
  return /\p{Ll}\p{Lu}/u.test(value) && value.length >= 8 && !/[.(]/.test(value);
}

function looksLikeKey(value: string): boolean {
  if (/^[0-9a-f]{16,}$/i.test(value) && /\d/.test(value)) return true;
  if (value.length < 12 || /\s/.test(value)) return false;
  if (/^(?:https?:|www\.|\/|\.\/|~\/)/.test(value) || /^[\w-]+(?:\.[\w-]+)+$/.test(value)) return false;
  const digits = value.match(/\d/g)?.length ?? 0;
  return (
    digits >= 2 &&
    /[A-Za-z]/.test(value) &&
    /^[\w+/=.~:!@#$%^&*-]+$/.test(value) &&
    !/^[a-z]+(?:[-_][a-z]+)*[-_]?\d{1,2}$/.test(value)
  );
}

function matchAt(pattern: RegExp, text: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}

const FIELD =
  /^(?:.*[_-])?(?:pass(?:word|wd|phrase)?|pwd|secret|client_?secret|api_?key|access_?token|refresh_?token|auth_?token|id_?token|token|private_?key|secret_?key|access_?key|authorization|cookie|credentials?|cvv|cvc|pin)$/i;
const DEEPEST = 64;

/** The same for JSON: every string, names of fields too, and whole strings in fields named `password` and the like. */
export function redactDeep<T>(value: T): { value: T; count: number } {
  let count = 0;
  const walk = (part: unknown, depth: number): unknown => {
    if (typeof part === "string") {
      const redacted = redactSecrets(part);
      count += redacted.count;
      return redacted.text;
    }
    if (part === null || typeof part !== "object") return part;
    if (depth >= DEEPEST) return null;
    if (Array.isArray(part)) return part.map((item) => walk(item, depth + 1));
    return Object.fromEntries(
      Object.entries(part).map(([name, item]) => {
        if (typeof item === "string" && item.length >= 3 && item !== REDACTED && isSecretField(name)) {
          count += 1;
          return [name, REDACTED];
        }
        return [walk(name, depth + 1) as string, walk(item, depth + 1)];
      }),
    );
  };
  const redacted = walk(value, 0) as T;
  return { value: count === 0 ? value : redacted, count };
}

function isSecretField(name: string): boolean {
  return FIELD.test(name.replace(/([a-z])([A-Z])/g, "$1_$2"));
}
