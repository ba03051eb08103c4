/** The first page of a new box, `/dashboard/connect`, and the light that goes on with the first request. */
import type { Hono } from "hono";
import type { Env } from "../auth.ts";
import { type ClientId, type Connection, isClient } from "../../views/clients.ts";
import { arrived, ConnectPage, FirstRequest, Steps, WelcomePage } from "../../views/connect.tsx";
import type { Chrome } from "../../views/layout.tsx";
import type { ReceiptLine } from "../../views/receipt.tsx";
import { chromeOf, show, type StudioContext, type StudioDeps } from "./context.tsx";
import { lineOf } from "./receipts.tsx";

const clientOf = (c: StudioContext): ClientId => {
  const client = c.req.query("client") ?? "";
  return isClient(client) ? client : "curl";
};

/** The newest request since a time, as its receipt's line. */
async function firstSince(deps: StudioDeps, since: number): Promise<ReceiptLine | null> {
  const { data } = await deps.engine.receipts.lines({ owner: null, since, limit: 1, offset: 0 });
  return data[0] ? lineOf(data[0]) : null;
}

/** A model that will answer: of the default provider, the first it is known to have. */
async function anyModel(deps: StudioDeps): Promise<string | null> {
  const active = deps.providers.active();
  const upstream = active.find((one) => one.isDefault) ?? active[0];
  if (!upstream) return null;
  const lists = await deps.models.all(0).catch(() => []);
  const model = lists.find((list) => list.upstream.id === upstream.id)?.models[0]?.id;
  return `${upstream.id}/${model ?? (upstream.builtin ? "echo" : "MODEL")}`;
}

export async function connectionOf(c: StudioContext, deps: StudioDeps, since: number): Promise<Connection> {
  const url = new URL(c.req.url);
  const model = await anyModel(deps);
  const keys = deps.admin.keys.list().filter((key) => !key.revokedAt);
  return {
    origin: `${c.env.secure ? "https" : "http"}://${c.req.header("host") ?? url.host}`,
    keyPrefix: keys[0]?.prefix.replace(/…$/, "") ?? null,
    model: model ?? "MODEL",
    hasProvider: model !== null,
    since,
    first: await firstSince(deps, since),
  };
}

/** True while nothing was done on this box: memory off and nothing stored. */
export async function isNew(deps: StudioDeps): Promise<boolean> {
  if (deps.admin.settings.read().enabled) return false;
  const { total } = await deps.engine.memories.list({ owner: null, limit: 1, offset: 0 });
  return total === 0;
}

export async function welcome(c: StudioContext, deps: StudioDeps): Promise<Response> {
  const [chrome, connection] = await Promise.all([chromeOf(c, deps), connectionOf(c, deps, 0)]);
  const { maxTokens } = deps.admin.settings.read();
  return show(
    c,
    <WelcomePage chrome={chrome} connection={connection} client={clientOf(c)} maxTokens={maxTokens} />,
  );
}

/** The steps again, after memory was turned on. */
export async function stepsPart(c: StudioContext, deps: StudioDeps, chrome: Chrome) {
  return <Steps chrome={chrome} connection={await connectionOf(c, deps, 0)} client="curl" />;
}

export function connectRoutes(app: Hono<Env>, deps: StudioDeps): void {
  app.get("/dashboard/connect", async (c) => {
    const [chrome, connection] = await Promise.all([chromeOf(c, deps), connectionOf(c, deps, Date.now())]);
    return show(c, <ConnectPage chrome={chrome} connection={connection} client={clientOf(c)} />);
  });

  app.get("/dashboard/welcome/first-request", async (c) => {
    const since = Number(c.req.query("since") ?? 0);
    const connection = await connectionOf(c, deps, Number.isSafeInteger(since) ? since : 0);
    return show(c, <FirstRequest connection={connection} />, connection.first ? { say: arrived } : {});
  });
}
