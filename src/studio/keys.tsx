/** `/dashboard/settings/keys`: make, change, rotate, revoke. */
import type { Hono } from "hono";
import type { Child } from "hono/jsx";
import type { Env } from "../auth.ts";
import { notFound } from "../error.ts";
import { keyChanges, newKey } from "../schemas/keys.ts";
import { check } from "../validate.ts";
import { curlWith } from "../../views/clients.ts";
import { draftOfKey, KeyDialog, type KeyDraft, newKeyDraft } from "../../views/key-dialog.tsx";
import {
  ForgetKeyDialog,
  KeysPage,
  type KeysProps,
  type KeyView,
  RevokeDialog,
  RotateDialog,
} from "../../views/keys.tsx";
import { connectionOf } from "./connect.tsx";
import {
  chromeOf,
  errorsOf,
  type Fields,
  finish,
  isPart,
  leave,
  numberOr,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
} from "./context.tsx";
import { dayEnd } from "./days.ts";
import { settingsCounts } from "./settings.tsx";

const BASE = "/dashboard/settings/keys";

export function keysRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { admin, engine } = deps;

  /** With the number of memories of the key itself; people behind it are owners of their own. */
  const withCounts = async (): Promise<KeyView[]> =>
    Promise.all(
      admin.keys.list().map(async (key) => {
        const counted = await engine.memories
          .list({ owner: key.id, status: "active", limit: 1, offset: 0 })
          .catch(() => null);
        return { ...key, memories: counted?.total ?? null };
      }),
    );

  const page = async (
    c: StudioContext,
    options: { secret?: KeysProps["secret"]; dialog?: Child; status?: number } = {},
  ): Promise<Response> => {
    const [chrome, keys] = await Promise.all([chromeOf(c, deps), withCounts()]);
    return show(
      c,
      <KeysPage
        chrome={chrome}
        counts={settingsCounts(deps)}
        keys={keys}
        secret={options.secret ?? null}
        dialog={options.dialog}
      />,
      { status: options.status ?? 200 },
    );
  };

  const dialog = (c: StudioContext, body: Child, status = 200) =>
    isPart(c) ? show(c, body, { status }) : page(c, { dialog: body, status });

  const find = async (id: string): Promise<KeyView> => {
    const key = (await withCounts()).find((one) => one.id === id);
    if (!key) throw notFound("key");
    return key;
  };

  app.get(BASE, (c) => page(c));

  app.get(`${BASE}/new`, (c) => dialog(c, <KeyDialog draft={newKeyDraft} errors={{}} id={null} />));

  /** The answer to making or rotating is the one page that ever shows the secret, so it is a page, not a redirect. */
  const secretPage = async (c: StudioContext, made: Omit<NonNullable<KeysProps["secret"]>, "snippet">) => {
    const connection = await connectionOf(c, deps, Date.now());
    const response = await page(c, { secret: { ...made, snippet: curlWith(connection, made.secret) } });
    if (isPart(c)) {
      // The whole document, put in place of the page: a secret must not travel in an address or a cookie.
      response.headers.set("HX-Retarget", "body");
      response.headers.set("HX-Reswap", "outerHTML show:top");
    }
    return response;
  };

  app.post(`${BASE}/new`, async (c) => {
    const { fields, all } = await readForm(c);
    const draft = readDraft(fields, all("scopes"));
    try {
      const { secret, key } = admin.keys.create(check(newKey, valuesOf(draft)));
      return await secretPage(c, { id: key.id, name: key.name, secret, rotated: false });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      return dialog(c, <KeyDialog draft={draft} errors={errors} id={null} />, status);
    }
  });

  app.get(`${BASE}/:id/edit`, async (c) => {
    const key = await find(c.req.param("id"));
    return dialog(c, <KeyDialog draft={draftOfKey(key)} errors={{}} id={key.id} />);
  });

  app.post(`${BASE}/:id/edit`, async (c) => {
    const key = await find(c.req.param("id"));
    const { fields, all } = await readForm(c);
    const draft = readDraft(fields, all("scopes"));
    try {
      admin.keys.change(key.id, check(keyChanges, valuesOf(draft, key)));
      return leave(c, BASE, { code: "saved" });
    } catch (thrown) {
      const { errors, status } = errorsOf(thrown);
      return dialog(c, <KeyDialog draft={draft} errors={errors} id={key.id} />, status);
    }
  });

  app.get(`${BASE}/:id/rotate`, async (c) =>
    dialog(c, <RotateDialog item={await find(c.req.param("id"))} />),
  );
  app.post(`${BASE}/:id/rotate`, async (c) => {
    const { secret, key } = admin.keys.rotate(c.req.param("id"));
    return secretPage(c, { id: key.id, name: key.name, secret, rotated: true });
  });

  app.get(`${BASE}/:id/revoke`, async (c) =>
    dialog(c, <RevokeDialog item={await find(c.req.param("id"))} />),
  );
  app.post(`${BASE}/:id/revoke`, async (c) => {
    const key = await find(c.req.param("id"));
    const { fields } = await readForm(c);
    admin.keys.revoke(key.id);
    if (fields["memories"] === "true") await engine.owners.erase({ owner: key.id });
    return leave(c, BASE, { code: "key-revoked" });
  });

  app.get(`${BASE}/:id/forget`, async (c) =>
    dialog(c, <ForgetKeyDialog item={await find(c.req.param("id"))} />),
  );
  app.post(`${BASE}/:id/forget`, async (c) => {
    const key = await find(c.req.param("id"));
    const { memories: deleted } = await engine.owners.erase({ owner: key.id });
    return isPart(c)
      ? leave(c, BASE, { code: "deleted-many", n: deleted })
      : finish(c, { code: "deleted-many", n: deleted }, { to: BASE });
  });
}

const readDraft = (fields: Fields, scopes: readonly string[]): KeyDraft => ({
  name: fields["name"] ?? "",
  scopes,
  expiresAt: fields["expiresAt"] ?? "",
  memory: fields["memory"] ?? "inherit",
  maxTokens: fields["maxTokens"] ?? "",
  models: fields["models"] ?? "",
  requestsPerMinute: fields["requestsPerMinute"] ?? "",
  tokensPerDay: fields["tokensPerDay"] ?? "",
  sharedPool: fields["sharedPool"] === "true",
  userHeader: fields["userHeader"] ?? "",
  userField: fields["userField"] ?? "",
});

const textOr = (text: string): string | null => text.trim() || null;

/** A comma-separated list; null when it is empty. */
export const listOr = (text: string): string[] | null => {
  const parts = text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter(Boolean);
  return parts.length > 0 ? parts : null;
};

/** What the schema checks. A day that was not touched keeps its hour. */
const valuesOf = (draft: KeyDraft, before?: KeyView) => ({
  name: draft.name.trim(),
  scopes: draft.scopes,
  ...(before && draft.expiresAt === (before.expiresAt?.slice(0, 10) ?? "")
    ? {}
    : { expiresAt: dayEnd(draft.expiresAt) }),
  memory: draft.memory,
  maxTokens: numberOr(draft.maxTokens),
  models: listOr(draft.models),
  requestsPerMinute: numberOr(draft.requestsPerMinute),
  tokensPerDay: numberOr(draft.tokensPerDay),
  sharedPool: draft.sharedPool,
  userHeader: textOr(draft.userHeader),
  userField: textOr(draft.userField),
});
