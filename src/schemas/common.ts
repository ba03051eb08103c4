/** The words that every request and answer is made of. Limits count code points, as JSON Schema does. */
import { z } from "zod";
import type { JsonObject } from "../memory/types.ts";

type TextOptions = { min?: number; max: number; blank?: boolean };

/** Text of `min` to `max` characters: well-formed Unicode without NUL, and not only white space unless `blank`. */
export function text({ min = 1, max, blank = false }: TextOptions) {
  const solid = min > 0 && !blank;
  return z
    .string()
    .superRefine((value, context) => {
      const problem = textProblem(value, min, max, solid);
      if (problem) context.addIssue({ code: "custom", message: problem });
    })
    .meta({ minLength: min, maxLength: max, ...(solid ? { pattern: "\\S" } : {}) });
}

function textProblem(value: string, min: number, max: number, solid: boolean): string | null {
  if (value.length > max && characters(value) > max) return `must have at most ${max} characters`;
  if (value.length < min) return `must have at least ${min} character${min === 1 ? "" : "s"}`;
  if (solid && value.trim() === "") return "must not be blank";
  if (value.includes("\0")) return "must not contain the character NUL";
  return value.isWellFormed() ? null : "must be well-formed Unicode";
}

function characters(value: string): number {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

/** A time in the answers and in requests: ISO 8601 with zone, years 0000 to 9999. */
export const time = z.iso
  .datetime({ offset: true, abort: true })
  .refine((value) => hasFourDigitYear(Date.parse(value)), "must be a time of the years 0000 to 9999 in UTC")
  .meta({ example: "2026-01-31T12:00:00.000Z" });

/** Beyond them a time is written with more digits, which nobody reads back. */
export function hasFourDigitYear(at: number): boolean {
  return at >= -62_167_219_200_000 && at <= 253_402_300_799_999;
}

/** Milliseconds or tokens or rows: never negative. */
export const count = z.int().min(0);

/** A JSON object, at most `bytes` long as JSON. */
export function jsonObject(bytes: number): z.ZodType<JsonObject, JsonObject> {
  const object = z
    .record(z.string(), z.unknown())
    .superRefine((value, context) => {
      if (Buffer.byteLength(JSON.stringify(value)) > bytes) {
        context.addIssue({ code: "custom", message: `must be at most ${bytes} bytes as JSON` });
      }
      if (!everyText(value, (part) => part.isWellFormed() && !part.includes("\0"))) {
        context.addIssue({
          code: "custom",
          message: "must be well-formed Unicode without the character NUL",
        });
      }
    })
    .meta({ description: `A JSON object of at most ${bytes} bytes.` });
  // Whatever came out of JSON.parse is JSON: the cast only says so.
  return object as unknown as z.ZodType<JsonObject, JsonObject>;
}

function everyText(value: unknown, good: (text: string) => boolean): boolean {
  if (typeof value === "string") return good(value);
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, inner]) => good(name) && everyText(inner, good));
}

/** An owner: the id of an API key, `keyId:person`, or `shared`. */
export const ownerName = text({ max: 400 }).meta({
  description: "Owner: the id of an API key, or `keyId:person`.",
});

export const limit = z.int().min(1).max(200).default(50);
export const offset = z.int().min(0).max(1_000_000_000);

/** A list in an answer. */
export function listOf<S extends z.ZodType>(row: S) {
  return z.strictObject({ data: z.array(row), total: count });
}

export const success = z.strictObject({ success: z.literal(true) });

/** The one shape of every error (OpenAI's, plus `details`). */
export const errorAnswer = z
  .strictObject({
    error: z.strictObject({
      message: z.string(),
      type: z.string(),
      code: z.string(),
      param: z.string().nullable(),
      details: z.array(z.strictObject({ field: z.string(), message: z.string() })),
    }),
  })
  .meta({ id: "Error" });

/** A secret that is sent in a header: printable ASCII without blanks. Empty removes it. */
export function headerSecret(max = 4096) {
  return z
    .string()
    .max(max)
    .regex(/^[\x21-\x7e]*$/, "must be printable ASCII without blanks");
}
