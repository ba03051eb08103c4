import { createHash } from "node:crypto";
import { lower } from "../text/fold.ts";
import type { Category } from "./types.ts";

const LONGEST = 60;

/** First 8 hex digits of the SHA-256. */
function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/**
 * `Postgres for this project` → `postgres_for_this_project`. Letters and digits of every script stay, accents too;
 * `c`, `c++` and `c#` differ; nothing left gives a hash; longer than 60 characters: cut there, plus `_` and a hash.
 */
export function slug(text: string): string {
  const plain = lower(text)
    .replace(/'/g, "")
    .replace(/(?<![+#])[^\p{L}\p{M}\p{N}+#]+|(?<=[+#])[^\p{L}\p{M}\p{N}+#]+/gu, "_")
    .replace(/(?<![\p{L}\p{N}+#])[+#]+|[+#]+(?=[\p{L}\p{N}])/gu, "_")
    .replace(/_{2,}/g, "_")
    .replace(/^_|_$/g, "");
  if (plain === "") return shortHash(text);
  if (plain.length <= LONGEST) return plain;
  const cut = plain
    .slice(0, LONGEST)
    .replace(/[\ud800-\udbff]$/, "")
    .replace(/_$/, "");
  return `${cut}_${shortHash(plain)}`;
}

/** Upsert key of a statement: `preference:typescript`, or of a slot: `identity:home`. */
export function slugKey(category: Category, value: string, slot?: string | null): string {
  return `${category}:${slot ?? slug(value)}`;
}
