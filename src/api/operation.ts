/**
 * The pattern of every JSON route: one declaration gives the validation, the types of its handler and its entry in
 * the OpenAPI document, and says who may call it. Handlers get checked input and call one engine method.
 *
 *     operation({
 *       method: "get", path: "/api/memory/{id}", tag: "Memory", summary: "Get one memory",
 *       access: "read:memory", owner: "span",
 *       params: z.strictObject({ id: z.uuid() }),
 *       answer: z.strictObject({ memory }),
 *       handle: async ({ params, owner }) => ({ memory: await engine.memories.get({ owner, id: params.id }) }),
 *     })
 */
import { z } from "zod";
import type { Principal } from "../auth.ts";
import { ownerName } from "../schemas/common.ts";

/**
 * Who may call: anybody; this machine or management; an API key with the scope, for its own rows, or management;
 * management alone.
 */
export type Access = "public" | "local" | "read:memory" | "write:memory" | "management";

/**
 * Whose rows: `one`: management must name the owner (`apiKeyId` in query or body); `span`: without a name management
 * sees all owners (`owner` is null). An API key is always its own owner.
 */
export type OwnerRule = "one" | "span";

export type ApiKey = Extract<Principal, { kind: "key" }>["key"];

/** What the caller's key says of the shared pool; management sees what the owner's key would. */
export function sharedPoolOf(key: ApiKey | null): { sharedPool?: boolean } {
  return key === null ? {} : { sharedPool: key.sharedPool };
}

type Shape = z.ZodObject;
type Strings = Record<string, string>;

export type Input<P, Q, B> = {
  params: P;
  query: Q;
  body: B;
  /** The owner that the call is bound to; null: all of them (management only, with rule `span`), or no owner rule. */
  owner: string | null;
  management: boolean;
  /** The key of the caller; null for management. */
  key: ApiKey | null;
  request: Request;
};

/** A status other than 200 for an answer. */
export class Reply<R> {
  readonly status: number;
  readonly value: R;
  constructor(status: number, value: R) {
    this.status = status;
    this.value = value;
  }
}

export function created<R>(value: R): Reply<R> {
  return new Reply(201, value);
}

type Declaration<P extends Shape, Q extends Shape, B extends z.ZodType, R extends z.ZodType> = {
  method: "get" | "post" | "put" | "patch" | "delete";
  /** OpenAPI's form: `/api/memory/{id}`. */
  path: `/${string}`;
  tag: string;
  summary: string;
  description?: string;
  access: Access;
  owner?: OwnerRule;
  params?: P;
  query?: Q;
  /** A JSON body. It may be absent where every field has a default. */
  body?: B;
  /** Says in words what another kind of body is; the handler reads `request` itself. */
  rawBody?: { type: string; description: string };
  /** The JSON answer, or in words what is streamed. */
  answer: R | { type: string; description: string };
  /** Statuses of success where 200 is not the only one. */
  statuses?: number[];
  /** At most one running for each owner and name; another is 429 `busy`. */
  exclusive?: string;
  /** Bytes of a JSON body, 1 MiB unless given. */
  maxBody?: number;
};

type Handle<P, Q, B, R> = (
  input: Input<P, Q, B>,
) => Promise<R | Reply<R> | Response> | R | Reply<R> | Response;

/** A declaration whose types are erased, ready to mount and to document. */
export type Operation = Declaration<Shape, Shape, z.ZodType, z.ZodType> & {
  handle: Handle<Strings, Record<string, unknown>, unknown, unknown>;
};

const none = z.strictObject({});

/** A body that names a row of an owner may name the owner too, as the query may; handlers never see it there. */
export function namesOwnerInBody({ method, owner, body }: Operation): boolean {
  return (method === "post" || method === "delete") && owner !== undefined && body !== undefined;
}

export function operation<
  R extends z.ZodType,
  P extends Shape = typeof none,
  Q extends Shape = typeof none,
  B extends z.ZodType = typeof none,
>(
  declaration: Declaration<P, Q, B, R> & {
    handle: Handle<z.output<P>, z.output<Q>, z.output<B>, z.input<R>>;
  },
): Operation {
  // The one place where types are erased: `mount` hands the handler exactly what these schemas gave.
  const erased = declaration as unknown as Operation;
  if (!namesOwnerInBody(erased) || !(erased.body instanceof z.ZodObject)) return erased;
  return { ...erased, body: erased.body.safeExtend({ apiKeyId: ownerName.exactOptional() }) };
}
