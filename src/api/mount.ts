/** Puts operations on a Hono app: who calls, what they sent, whose rows, the answer. In that order for every route. */
import type { Context, Hono } from "hono";
import type { z } from "zod";
import {
  callerOwner,
  requireManagement,
  requireOwner,
  requireScope,
  type Env,
  type Principal,
} from "../auth.ts";
import { checkEncoding, readJson } from "../body.ts";
import { isLoopback } from "../config.ts";
import { AppError, notFound, type ErrorDetail } from "../error.ts";
import { checkSameOrigin } from "../origin.ts";
import { errorResponse } from "../respond.ts";
import { jsonSchema } from "../schemas/json-schema.ts";
import { collect, invalidFields } from "../validate.ts";
import { namesOwnerInBody, Reply, type ApiKey, type Operation, type OwnerRule } from "./operation.ts";

export type MountOptions = {
  /** Whether management may name this owner. */
  ownerExists: (name: string) => Promise<boolean> | boolean;
  /** Refuses what a key may not do now: 429. */
  admitKey: (key: ApiKey) => void;
  /** Compares every JSON answer with its schema; for tests, since it costs time. */
  checkAnswers?: boolean;
};

type App = Hono<Env>;
type Call = Context<Env>;

/** Mounts all operations, and 405 with `Allow` for the other methods of each path. Literal paths go before `{id}`. */
export function mount(app: App, operations: Operation[], options: MountOptions): void {
  const running = new Set<string>();
  const paths = Map.groupBy(operations.toSorted(literalFirst), (operation) => operation.path);
  for (const [path, group] of paths) {
    const pattern = path.replaceAll(/\{(\w+)\}/g, ":$1");
    for (const operation of group) app.on(operation.method, [pattern], handler(operation, options, running));
    const methods = group.map((operation) => operation.method.toUpperCase());
    if (new Set(methods).size < methods.length) throw new Error(`${path} is declared twice for one method`);
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

function handler(operation: Operation, options: MountOptions, running: Set<string>) {
  const read = reader(operation);
  return async (c: Call): Promise<Response> => {
    const principal = admit(c, operation, options);
    const { params, query, common, ...sent } = await read(c);
    const { named, body } = namesOwnerInBody(operation)
      ? takeOwner(sent.body)
      : { named: {}, body: sent.body };
    const owner = operation.owner ? await ownerOf(c, operation.owner, common, named, options) : null;
    const release = operation.exclusive ? occupy(running, `${operation.exclusive} ${owner ?? ""}`) : null;
    try {
      const key = principal.kind === "key" ? principal.key : null;
      const answer = await operation.handle({
        params,
        query,
        body,
        owner,
        management: principal.kind === "management",
        key,
        request: c.req.raw,
      });
      if (answer instanceof Response) {
        if (c.req.method === "HEAD") return await headOf(answer, release);
        return release ? whenDone(answer, release) : answer;
      }
      const reply = answer instanceof Reply ? answer : new Reply(200, answer);
      if (options.checkAnswers) assertAnswer(operation, reply.value);
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

/** Who calls, when they may call this at all: 401, 403, or 429 of the key. */
function admit(c: Call, { access }: Operation, { admitKey }: MountOptions): Principal {
  const principal = c.get("principal");
  switch (access) {
    case "public":
      return principal;
    case "local":
      if (!isLocal(c)) requireManagement(principal);
      return principal;
    case "management":
      requireManagement(principal);
      break;
    case "read:memory":
    case "write:memory":
      requireScope(principal, access);
      break;
  }
  if (principal.kind === "key") admitKey(principal.key);
  // A cookie goes along with whatever page asks, so the page must be ours.
  if (principal.kind === "management" && principal.via === "cookie") checkSameOrigin(c.req.raw);
  return principal;
}

/** From this machine itself: what a proxy beside us passes on is somebody else's, whether we trust its headers or not. */
function isLocal(c: Call): boolean {
  const passedOn = c.req.header("x-forwarded-for") ?? c.req.header("forwarded");
  return isLoopback(c.env.address) && passedOn === undefined;
}

type Common = { apiKeyId?: string; user?: string };

/** Query parameters that every route with an owner takes; they are no part of its own schema. */
const commonNames = ["apiKeyId", "user"] as const;

function reader(operation: Operation) {
  let types: Record<string, string> | null = null;
  const queryTypes = () => (types ??= operation.query ? propertyTypes(operation.query) : {});
  return async (c: Call) => {
    const details: ErrorDetail[] = [];
    const params = operation.params?.safeParse(c.req.param());
    if (params && !params.success) throw notFound("thing");
    const common: Common = {};
    const raw: Record<string, unknown> = {};
    for (const [name, values] of Object.entries(c.req.queries())) {
      const [value = ""] = values;
      if (values.length > 1 && queryTypes()[name] === "array")
        raw[name] = values.flatMap((one) => one.split(","));
      else if (values.length > 1) details.push({ field: name, message: "was given more than once" });
      else if (operation.owner && isCommon(name)) common[name] = value;
      else raw[name] = fromText(value, queryTypes()[name]);
    }
    const query = operation.query ? collect(operation.query, raw, details) : refuseAll(raw, details);
    if (operation.rawBody) checkEncoding(c.req.raw);
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

function takeOwner(body: unknown): { named: Common; body: unknown } {
  const { apiKeyId, ...rest } = body as Common;
  return { named: apiKeyId === undefined ? {} : { apiKeyId }, body: rest };
}

async function ownerOf(
  c: Call,
  rule: OwnerRule,
  query: Common,
  body: Common,
  { ownerExists }: MountOptions,
): Promise<string | null> {
  if (body.apiKeyId !== undefined && query.apiKeyId !== undefined && body.apiKeyId !== query.apiKeyId) {
    throw invalidFields([{ field: "apiKeyId", message: "body and query name different owners" }]);
  }
  const principal = c.get("principal");
  const hint = { header: (name: string) => c.req.header(name), user: query.user };
  const owner = callerOwner(principal, hint, body.apiKeyId ?? query.apiKeyId);
  if (principal.kind === "management" && owner !== null && !(await ownerExists(owner)))
    throw notFound("owner");
  return rule === "one" ? requireOwner(owner) : owner;
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

/** Its headers alone: nobody will read the body, so whatever makes it ends here. */
async function headOf(response: Response, done: (() => void) | null): Promise<Response> {
  await response.body?.cancel();
  done?.();
  return new Response(null, response);
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
