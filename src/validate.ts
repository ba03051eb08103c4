/** Checks what comes from outside: strict zod schemas in, one error that names every wrong field out. */
import type { z } from "zod";
import { AppError, type ErrorDetail } from "./error.ts";

/** The parsed value, or an AppError `invalid_request` (400) with every wrong field in its details. */
export function check<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const details: ErrorDetail[] = [];
  const parsed = collect(schema, value, details);
  if (details.length > 0) throw invalidFields(details);
  return parsed as z.output<S>;
}

/** The same for one part of several: problems are added to `details`, so that all parts are reported at once. */
export function collect(schema: z.ZodType, value: unknown, details: ErrorDetail[]): unknown {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  for (const issue of result.error.issues) details.push(...detailsOf(issue, []));
  return undefined;
}

/** 400 for these fields; the message repeats the first one, for clients that show nothing else. */
export function invalidFields(details: ErrorDetail[]): AppError {
  const [first] = details;
  const field = first?.field ? `${first.field}: ` : "";
  return new AppError("invalid_request", `${field}${first?.message ?? "The request is not valid."}`, {
    param: first?.field || null,
    details: details.slice(0, MAX_DETAILS),
  });
}

const MAX_DETAILS = 50;

function detailsOf(issue: z.core.$ZodIssue, prefix: PropertyKey[]): ErrorDetail[] {
  const path = [...prefix, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      field: fieldName([...path, key]),
      message: "There is no such field.",
    }));
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    // Of several shapes, the one that fits best is what the sender meant.
    const [closest] = issue.errors.toSorted((a, b) => distance(a) - distance(b));
    if (closest && distance(closest) < Infinity) return closest.flatMap((inner) => detailsOf(inner, path));
  }
  return [{ field: fieldName(path), message: sentence(issue) }];
}

/** How far a value was from one shape of a union: a wrong type at the top is not that shape at all. */
function distance(issues: z.core.$ZodIssue[]): number {
  if (issues.some((issue) => issue.path.length === 0 && issue.code === "invalid_type")) return Infinity;
  return issues.reduce((sum, issue) => sum + (issue.code === "unrecognized_keys" ? issue.keys.length : 1), 0);
}

/** `fallbacks[0].id`, as people write it; names are cut, since they may be anybody's text. */
function fieldName(path: PropertyKey[]): string {
  return path
    .map((part, at) =>
      typeof part === "number" ? `[${part}]` : `${at > 0 ? "." : ""}${String(part).slice(0, 100)}`,
    )
    .join("");
}

function sentence(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is required" : `must be ${expected(issue.expected)}`;
    case "invalid_value":
      return issue.values.length === 1
        ? `must be ${String(issue.values[0])}`
        : `must be one of ${issue.values.map(String).join(", ")}`;
    case "too_small":
      return `must ${have(issue.origin)} at least ${issue.minimum}${unit(issue.origin, issue.minimum)}`;
    case "too_big":
      return `must ${have(issue.origin)} at most ${issue.maximum}${unit(issue.origin, issue.maximum)}`;
    case "invalid_format":
      return (
        formats[issue.format] ??
        (issue.message.startsWith("Invalid") ? "has the wrong format" : issue.message)
      );
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_key":
      return "has a name that is not allowed";
    case "invalid_union":
      return "options" in issue && Array.isArray(issue.options)
        ? `must be one of ${issue.options.map(String).join(", ")}`
        : "is not valid";
    case "invalid_element":
    case "unrecognized_keys":
      return "is not valid";
    case "custom":
      return issue.message;
  }
}

const formats: Record<string, string> = {
  uuid: "must be a UUID",
  datetime: "must be a time as in 2026-01-31T12:00:00Z",
  url: "must be a URL",
};

const names: Record<string, string> = {
  int: "a whole number",
  number: "a number",
  string: "a text",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  null: "null",
};

function expected(type: string): string {
  return names[type] ?? type;
}

function have(origin: string): string {
  return origin === "string" || origin === "array" || origin === "set" ? "have" : "be";
}

function unit(origin: string, count: number | bigint): string {
  const s = Number(count) === 1 ? "" : "s";
  if (origin === "string") return ` character${s}`;
  return origin === "array" || origin === "set" ? ` item${s}` : "";
}
