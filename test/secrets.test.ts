import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { REDACTED, redactDeep, redactSecrets } from "../src/extract/secrets.ts";

/** [text, what must be gone] */
const SECRETS: ReadonlyArray<readonly [string, string]> = [
  ["my password is hunter2", "hunter2"],
  ["My password is swordfish.", "swordfish"],
  ["the password for the wifi is Blau-Wal-77", "Blau-Wal-77"],
  ["password: correcthorse", "correcthorse"],
  ["DB_PASSWORD=s3cret!", "s3cret!"],
  ["API_KEY=abcd1234efgh5678", "abcd1234efgh5678"],
  ['{"apiKey": "9f86d081884c7d659a2feaa0c55ad015"}', "9f86d081884c7d659a2feaa0c55ad015"],
  ["mein Passwort lautet Hase1234", "Hase1234"],
  ["mot de passe : Tr0ub4dor", "Tr0ub4dor"],
  ["mi contraseña es perro123", "perro123"],
  ["minha senha é gato99x", "gato99x"],
  ["la mia password è Luna2020!", "Luna2020"],
  ["mijn wachtwoord is Fiets88", "Fiets88"],
  ["salasanani on Kissa123", "Kissa123"],
  ["密码是abc12345", "abc12345"],
  ["パスワードはneko1234です", "neko1234"],
  ["my PIN is 4821", "4821"],
  ["card 4111 1111 1111 1111, expires 01/30", "4111 1111 1111 1111"],
  ["postgres://app:p4ss@db/x", "p4ss"],
  ["a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\nb", "MIIEow"],
  ["-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAAB3Nza", "b3BlbnNzaC1rZXk"],
  ["Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"],
  ["https://files.example/z?access_token=abcdef123456&x=1", "abcdef123456"],
  ["トークンはghp_aaaaBBBB1111aaaaBBBB1111aaaaBBBB1111を使う", "ghp_aaaa"],
];

const ORDINARY = [
  "the password is wrong",
  "my password is not working, how do I reset it?",
  "the token is expired and I need help",
  "I need an API key for this",
  "token: string; password: z.string()",
  "const key = getKey(id)",
  "order 4111111111111112",
  "2026-05-01T12:00:00.123456Z id 550e8400-e29b-41d4-a716-446655440000",
  "commit 3f2a9c1b7e5d4f6a8b9c0d1e2f3a4b5c6d7e8f90",
  "I prefer basic authentication over tokens",
  "src/components/password-input.tsx",
  "reset your password here: https://example.com/reset",
  "passwords are hashed with argon2id",
  "call me at +49 170 1234567",
  "token bucket algorithm v2",
];

describe("redactSecrets", () => {
  test.each(SECRETS)("%j", (text, secret) => {
    const redacted = redactSecrets(text);
    expect(redacted.text).not.toContain(secret);
    expect(redacted.text).toContain(REDACTED);
    expect(redacted.count).toBe(1);
    expect(redactSecrets(redacted.text)).toEqual({ text: redacted.text, count: 0 });
  });

  test.each(ORDINARY)("leaves %j", (text) => {
    expect(redactSecrets(text)).toEqual({ text, count: 0 });
  });

  test("keeps what stands around a secret", () => {
    const { text } = redactSecrets("The relay is smtp.example.net, password: Wal-2024-x, port 587.");
    expect(text).toBe("The relay is smtp.example.net, password: [redacted], port 587.");
  });

  test("any text at all, twice the same", () => {
    const parts = fc.constantFrom(
      "password",
      " is ",
      "sk-",
      "aB3",
      "4111 1111 1111 1111",
      "://",
      ":",
      "@",
      '"',
      "\n",
      "\ud800",
      "\0",
      "=",
      "-----BEGIN PRIVATE KEY-----",
      "密码",
      "eyJ",
      ".",
    );
    fc.assert(
      fc.property(
        fc.array(fc.oneof(parts, fc.string({ unit: "binary", maxLength: 12 })), { maxLength: 40 }),
        (pieces) => {
          const once = redactSecrets(pieces.join(""));
          expect(once.count >= 0).toBe(true);
          expect(once.text.includes("\ud800")).toBe(
            pieces.join("").includes("\ud800") && once.text.includes("\ud800"),
          );
        },
      ),
    );
  });

  test("a megabyte without blanks", () => {
    const token = "ghp_aaaaBBBB1111aaaaBBBB1111aaaaBBBB1111";
    const text = `${"=".repeat(500_000)} ${token} ${"Ab1/".repeat(125_000)}`;
    expect(redactSecrets(text).text).not.toContain(token);
  });
});

describe("redactDeep", () => {
  test("strings, names and fields of any depth", () => {
    const { value, count } = redactDeep({
      note: ["my password is hunter2", 7],
      password: "abc",
      nested: { clientSecret: "xyz", ok: true, AUTH_TOKEN: "t-o-k" },
    });
    expect(value).toEqual({
      note: ["my password is [redacted]", 7],
      password: "[redacted]",
      nested: { clientSecret: "[redacted]", ok: true, AUTH_TOKEN: "[redacted]" },
    });
    expect(count).toBe(4);
  });

  test("the same object when nothing is secret", () => {
    const metadata = { category: "preference", tokens: 12, list: [null, "tea"] };
    expect(redactDeep(metadata).value).toBe(metadata);
  });
});
