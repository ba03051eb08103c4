/** Puts operations on a Hono app: who calls, what they sent, whose rows, the answer. In that order for every route. */
import type { Context, Hono } from "hono";
import type { z } from "zod";
import { AppError, notFound, type ErrorDetail } from "../error.ts";
import { errorResponse } from "../respond.ts";
import { collect, invalidFields } from "../validate.ts";
import { readJson } from "./body.ts";
import { Reply, type Input, type Operation } from "./operation.ts";
import { jsonSchema } from "./json-schema.ts";

export type Caller =
  | { kind: "management" }
  | { kind: "key"; keyId: string; owner: string | null; sharedPool: boolean };

/** What the routes need to know about who calls; the composition root gives it. */
export type Access = {
  /** Who calls, with everything that can refuse it: 401, 403 `insufficient_scope`, 429 of the key. Null for public ones. */
  admit(c: Context, access: Operation["access"]): Promise<Caller | null>;
  /** Whether management may name this owner. */
  ownerExists(name: string): Promise<boolean>;
};

export type MountOptions = {
  access: Access;
  /** Compares every JSON answer with its schema; for tests, since it costs time. */
  checkAnswers?: boolean;
};

/** Mounts all operations, and 405 with `Allow` for the other methods of each path. Literal paths go before `{id}`. */
export function mount(app: Hono, operations: Operation[], options: MountOptions): void {
  const running = new Set<string>();
  const paths = Map.groupBy(operations.toSorted(literalFirst), (operation) => operation.path);
  for (const [path, group] of paths) {
    const pattern = path.replaceAll(/\{(\w+)\}/g, ":$1");
    for (const operation of group) app.on(operation.method, [pattern], handler(operation, options, running));
    const methods = group.map((operation) => operation.method.toUpperCase());
    const allow = [...methods, ...(methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"].join(", ");
    app.all(pattern, (c) => {
      if (c.req.method === "OPTIONS") return c.body(null, 204, { Allow: allow });
      const message = `${c.req.method} is not possible here; allowed: ${allow}.`;
      return errorResponse(new AppError("method_not_allowed", message), { Allow: allow });
    });
  }
}

function literalFirst(a: Operation, b: Operation): number {
  return rank(a.path) < rank(b.path) ? -1 : Number(rank(a.path) > rank(b.path));
}

/** A placeholder sorts after any literal segment. */
function rank(path: string): string {
  return path.replaceAll("{", "\u{10ffff}");
}

function handler(operation: Operation, { access, checkAnswers = false }: MountOptions, running: Set<string>) {
  const read = reader(operation);
  const bodyOwner = operation.body !== undefined && takesOwner(operation.body);
  return async (c: Context): Promise<Response> => {
    const caller = await access.admit(c, operation.access);
    const { params, query, body, common } = await read(c);
    const owner = operation.owner
      ? await ownerOf(operation, caller, common, bodyOwner ? body : null, access)
      : null;
    const release = operation.exclusive ? occupy(running, `${operation.exclusive} ${owner ?? ""}`) : null;
    try {
      const key = caller?.kind === "key" ? caller : null;
      const input: Input<Record<string, string>, Record<string, unknown>, unknown> = {
        params,
        query,
        body,
        owner,
        management: caller?.kind === "management",
        keyId: key?.keyId ?? null,
        sharedPool: key?.sharedPool ?? false,
        request: c.req.raw,
      };
      const answer = await operation.handle(input);
      if (answer instanceof Response) return release ? whenDone(answer, release) : answer;
      const reply = answer instanceof Reply ? answer : new Reply(200, answer);
      if (checkAnswers) assertAnswer(operation, reply.value);
      release?.();
      return c.body(JSON.stringify(reply.value), reply.status as 200, {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
      });
    } catch (error) {
      release?.();
      throw error;
    }
  };
}

type Common = { apiKeyId?: string; user?: string };

/** Query parameters that every route with an owner takes; they are no part of its own schema. */
const commonNames = ["apiKeyId", "user"] as const;

function reader(operation: Operation) {
  const queryTypes = operation.query ? propertyTypes(operation.query) : {};
  return async (c: Context) => {
    const details: ErrorDetail[] = [];
    const params = operation.params?.safeParse(c.req.param());
    if (params && !params.success) throw notFound("thing");
    const common: Common = {};
    const raw: Record<string, unknown> = {};
    for (const [name, values] of Object.entries(c.req.queries())) {
      const [value = ""] = values;
      if (values.length > 1) details.push({ field: name, message: "was given more than once" });
      else if (operation.owner && isCommon(name)) common[name] = value;
      else raw[name] = fromText(value, queryTypes[name]);
    }
    const query = operation.query ? collect(operation.query, raw, details) : refuseAll(raw, details);
    let body: unknown;
    if (operation.body) {
      const sent = await readJson(c.req.raw, operation.maxBody);
      body = collect(operation.body, sent === undefined ? {} : sent, details);
    }
    if (details.length > 0) throw invalidFields(details);
    return {
      params: (params?.data ?? {}) as Record<string, string>,
      query: (query ?? {}) as Record<string, unknown>,
      body,
      common,
    };
  };
}

function isCommon(name: string): name is (typeof commonNames)[number] {
  return commonNames.some((known) => known === name);
}

function refuseAll(raw: Record<string, unknown>, details: ErrorDetail[]): undefined {
  for (const field of Object.keys(raw))
    details.push({ field: field.slice(0, 100), message: "There is no such field." });
}

/** The JSON type of each field of an object schema. */
function propertyTypes(schema: z.ZodType): Record<string, string> {
  const properties = jsonSchema(schema).properties ?? {};
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [
      name,
      property.type ?? property.anyOf?.[0]?.type ?? "string",
    ]),
  );
}

/** A query parameter as the value that its schema wants; what does not convert stays text, so that the schema names it. */
function fromText(value: string, type: string | undefined): unknown {
  if ((type === "integer" || type === "number") && /^-?\d{1,15}(\.\d{1,6})?$/.test(value))
    return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  if (type === "array") return value.split(",");
  return value;
}

function takesOwner(schema: z.ZodType): boolean {
  return "apiKeyId" in propertyTypes(schema);
}

async function ownerOf(
  operation: Operation,
  caller: Caller | null,
  common: Common,
  body: unknown,
  access: Access,
): Promise<string | null> {
  const inBody = body === null ? undefined : (body as Common).apiKeyId;
  if (inBody !== undefined && common.apiKeyId !== undefined && inBody !== common.apiKeyId) {
    throw invalidFields([{ field: "apiKeyId", message: "body and query name different owners" }]);
  }
  const named = inBody ?? common.apiKeyId;
  if (caller?.kind === "key") {
    if (caller.owner === null) {
      throw new AppError(
        "owner_required",
        "This key serves many people: name the person in its header or `user=`.",
      );
    }
    // Somebody else's owner is as good as none: the answer must not tell whether it exists.
    if (named !== undefined && named !== caller.owner) throw notFound("owner");
    return caller.owner;
  }
  if (named === undefined) {
    if (operation.owner === "span") return null;
    throw invalidFields([{ field: "apiKeyId", message: "name the owner that this is for" }]);
  }
  if (!(await access.ownerExists(named))) throw notFound("owner");
  return named;
}

function occupy(running: Set<string>, name: string): () => void {
  if (running.has(name)) {
    throw new AppError("busy", "One of these is running already; wait until it has ended.", {
      retryAfter: 5,
    });
  }
  running.add(name);
  return () => running.delete(name);
}

/** The same response, with `done` called once when its body has been sent, failed or been left. */
function whenDone(response: Response, done: () => void): Response {
  if (!response.body) {
    done();
    return response;
  }
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done: ended, value } = await reader.read();
        if (!ended) return controller.enqueue(value as Uint8Array);
        done();
        controller.close();
      } catch (error) {
        done();
        controller.error(error);
      }
    },
    async cancel(reason) {
      done();
      await reader.cancel(reason);
    },
  });
  return new Response(body, response);
}

function assertAnswer(operation: Operation, value: unknown): void {
  if (!("safeParse" in operation.answer)) return;
  const details: ErrorDetail[] = [];
  collect(operation.answer, JSON.parse(JSON.stringify(value)), details);
  if (details.length > 0) {
    const problems = details.map(({ field, message }) => `${field}: ${message}`).join("; ");
    throw new Error(`${operation.method} ${operation.path} answers against its schema: ${problems}`);
  }
}
