/** Two hundred generated secrets of the common kinds, each in sentences, code, JSON and configuration. */
import { expect, test } from "bun:test";
import { redactDeep, redactSecrets } from "../src/extract/secrets.ts";

/** A small generator with a fixed seed (mulberry32), so that a failure can be looked at again. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const random = generator(20_260_101);
const pick = (alphabet: string, length: number) =>
  Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join("");
const ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX = "0123456789abcdef";
const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64 = `${ALNUM}+/`;
const URL64 = `${ALNUM}-_`;
const json64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Appends the digit that makes the Luhn sum right. */
function card(prefix: string, length: number): string {
  const body = prefix + pick("0123456789", length - prefix.length - 1);
  let sum = 0;
  for (let at = 0; at < body.length; at += 1) {
    let digit = Number(body[body.length - 1 - at]);
    if (at % 2 === 0) digit = digit > 4 ? digit * 2 - 9 : digit * 2;
    sum += digit;
  }
  return body + String((10 - (sum % 10)) % 10);
}

/** Bare: recognised wherever it stands. */
const BARE: ReadonlyArray<() => string> = [
  () => `sk-${pick(ALNUM, 48)}`,
  () => `sk-proj-${pick(URL64, 60)}`,
  () => `sk-ant-api03-${pick(URL64, 93)}AA`,
  () => `sk-or-v1-${pick(HEX, 64)}`,
  () => `sk_live_${pick(ALNUM, 24)}`,
  () => `rk_test_${pick(ALNUM, 24)}`,
  () => `whsec_${pick(ALNUM, 32)}`,
  () => `ghp_${pick(ALNUM, 36)}`,
  () => `gho_${pick(ALNUM, 36)}`,
  () => `github_pat_${pick(ALNUM, 22)}_${pick(ALNUM, 59)}`,
  () => `glpat-${pick(ALNUM, 20)}`,
  () => `xoxb-${pick("0123456789", 12)}-${pick("0123456789", 12)}-${pick(ALNUM, 24)}`,
  () => `AKIA${pick(UPPER, 16)}`,
  () => `ASIA${pick(UPPER, 16)}`,
  () => `AIza${pick(ALNUM, 35)}`,
  () => `GOCSPX-${pick(ALNUM, 28)}`,
  () => `npm_${pick(ALNUM, 36)}`,
  () => `pypi-AgEIcHlwaS5vcmc${pick(ALNUM, 70)}`,
  () => `hf_${pick(ALNUM, 34)}`,
  () => `SG.${pick(ALNUM, 22)}.${pick(ALNUM, 43)}`,
  () => `dop_v1_${pick(HEX, 64)}`,
  () => `shpat_${pick(HEX, 32)}`,
  () => `lin_api_${pick(ALNUM, 40)}`,
  () => `figd_${pick(ALNUM, 40)}`,
  () => `sbp_${pick(HEX, 40)}`,
  () => `dckr_pat_${pick(ALNUM, 27)}`,
  () => `hvs.${pick(ALNUM, 24)}`,
  () => `glsa_${pick(ALNUM, 32)}_${pick(HEX, 8)}`,
  () => `gsk_${pick(ALNUM, 52)}`,
  () => `xai-${pick(ALNUM, 80)}`,
  () => `pplx-${pick(ALNUM, 48)}`,
  () => `r8_${pick(ALNUM, 37)}`,
  () => `dapi${pick(HEX, 32)}`,
  () => `AGE-SECRET-KEY-1${pick(UPPER, 58)}`,
  () => `${pick("0123456789", 9)}:AA${pick(URL64, 33)}`,
  () => `${json64({ alg: "HS256", typ: "JWT" })}.${json64({ sub: pick(ALNUM, 8) })}.${pick(URL64, 43)}`,
  () => card("4", 16),
  () => card("51", 16).replace(/(\d{4})(?=\d)/g, "$1 "),
  () => card("37", 15),
  () => card("6011", 16).replace(/(\d{4})(?=\d)/g, "$1-"),
];
/** Told by what stands before: `{}` is the secret. */
const NAMED: ReadonlyArray<readonly [string, () => string]> = [
  ["my password is {}", () => pick(ALNUM, 9) + pick("0123456789", 2)],
  ["Passwort: {}", () => `${pick(ALNUM, 8)}!${pick("0123456789", 2)}`],
  ["le mot de passe est {}", () => `${pick(ALNUM, 8)}7`],
  ["la contraseña es {}", () => `${pick(ALNUM, 8)}7`],
  ["wachtwoord is {}", () => `${pick(ALNUM, 8)}7`],
  ["密码是{}", () => `${pick(ALNUM, 8)}7`],
  ["パスワードは{}", () => `${pick(ALNUM, 8)}7`],
  ['{"password":"{}"}', () => pick(ALNUM, 10)],
  ["DB_PASSWORD={}", () => `${pick(ALNUM, 10)}4`],
  ["export OPENAI_API_KEY={}", () => `${pick(ALNUM, 30)}42`],
  ["aws_secret_access_key = {}", () => `${pick(BASE64, 37)}a1Z`],
  ["AccountKey={};EndpointSuffix=core", () => `${pick(BASE64, 84)}a1==`],
  ["client_secret: '{}'", () => `${pick(ALNUM, 30)}42`],
  ["Authorization: Bearer {}", () => `${pick(ALNUM, 30)}42`],
  ["curl -u admin:{}@host https://admin:{}@db.example/x", () => `${pick(ALNUM, 10)}`],
  ["redis://default:{}@cache:6379/0", () => pick(ALNUM, 16)],
  ["https://api.example/v1?api_key={}&page=2", () => `${pick(ALNUM, 24)}42`],
  ["-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", () => pick(BASE64, 64)],
  ["-----BEGIN EC PRIVATE KEY-----\\n{}\\n-----END EC PRIVATE KEY-----", () => pick(BASE64, 64)],
  ["my PIN is {}", () => pick("123456789", 4)],
];
const FRAMES = [
  "Remember that the bot uses {} and only on Mondays.",
  "key={}",
  '{"note": "see {}"}',
  "トークンは{}です",
  "`{}`",
];

const planted = Array.from({ length: 200 }, (_, at) => {
  if (at % 2 === 0) {
    const make = BARE[(at / 2) % BARE.length];
    const secret = make?.() ?? "";
    return { secret, text: (FRAMES[at % FRAMES.length] ?? "{}").replace("{}", secret) };
  }
  const [frame, make] = NAMED[((at - 1) / 2) % NAMED.length] ?? ["{}", () => ""];
  const secret = make();
  return { secret, text: frame.replaceAll("{}", secret) };
});

test("200 planted secrets, none is left", () => {
  const left = planted.filter(({ secret, text }) => redactSecrets(text).text.includes(secret));
  expect(left).toEqual([]);
  expect(planted).toHaveLength(200);
});

test("none is left in one text of all of them, nor in metadata", () => {
  const whole = redactSecrets(planted.map(({ text }) => text).join("\n\n"));
  expect(planted.filter(({ secret }) => whole.text.includes(secret))).toEqual([]);
  const deep = JSON.stringify(redactDeep({ rows: planted.map(({ text }) => ({ text })) }).value);
  expect(planted.filter(({ secret }) => deep.includes(secret))).toEqual([]);
});
