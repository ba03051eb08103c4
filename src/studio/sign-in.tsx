/** The way in: management token or one-time link, a cookie for 30 days; and the way out. */
import type { Hono } from "hono";
import { getCookie } from "hono/cookie";
import { type Env, STUDIO_COOKIE } from "../auth.ts";
import { AppError, toAppError } from "../error.ts";
import { count } from "../../views/format.ts";
import { SignInPage } from "../../views/sign-in.tsx";
import {
  back,
  cookies,
  isPart,
  readForm,
  show,
  type StudioContext,
  type StudioDeps,
  THEME_COOKIE,
  themeOf,
} from "./context.tsx";
import { requireOwnPage, safeNext } from "./guard.ts";

const SESSION_SECONDS = 30 * 24 * 60 * 60;
const THEME_SECONDS = 365 * 24 * 60 * 60;

/** Why one stands here, where there is a reason. */
function noteOf(c: StudioContext): { note?: string } {
  const restored = c.req.query("restored");
  if (restored !== undefined && /^\d{1,9}$/.test(restored)) {
    const memories = count(Number(restored), "memory", "memories");
    return { note: `Restored, with ${memories}. Sign in with the token of the backup.` };
  }
  return c.req.query("out") === undefined ? {} : { note: "You are signed out." };
}

export function signInRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { auth, admin } = deps;

  const page = (
    c: StudioContext,
    options: { status: number; error?: string; note?: string; next?: string },
  ) =>
    show(
      c,
      <SignInPage
        assets={deps.assets.urls}
        theme={themeOf(c)}
        version={deps.version}
        host={c.req.header("host") ?? ""}
        next={safeNext(options.next)}
        error={options.error ?? null}
        note={options.note ?? null}
      />,
      { status: options.status },
    );

  const enter = (c: StudioContext, to: string): Response => {
    cookies.set(c, STUDIO_COOKIE, admin.studio.open(), SESSION_SECONDS);
    return c.redirect(to, 303);
  };

  /** 401, or 429 with Retry-After, as the page with the form. */
  const refused = (c: StudioContext, thrown: unknown, message: string, next?: string): Response => {
    const error = toAppError(thrown);
    if (error.code === "internal") throw thrown;
    if (error.retryAfter !== undefined) c.header("Retry-After", String(Math.ceil(error.retryAfter)));
    const text =
      error.code === "rate_limited"
        ? `Too many wrong tries from this address. Wait ${Math.ceil(error.retryAfter ?? 60)} seconds.`
        : message;
    return page(c, { status: error.status, error: text, ...(next === undefined ? {} : { next }) });
  };

  app.get("/sign-in", (c) => {
    const token = c.req.query("token");
    const next = c.req.query("next");
    if (token === undefined) {
      if (c.get("principal").kind === "management") return c.redirect(safeNext(next), 303);
      return page(c, {
        status: 200,
        ...(next === undefined ? {} : { next }),
        ...noteOf(c),
      });
    }
    // Whoever only looks at the link (a mail filter, a preview of a chat) does not use it up.
    if (c.req.method === "HEAD") return c.body(null, 204);
    if (admin.studio.useLink(token)) return enter(c, "/dashboard/memory");
    try {
      return auth.refuse(c.env.address);
    } catch (thrown) {
      return refused(
        c,
        thrown,
        "This link was used or is older than 30 minutes. Enter the token, or print a new link.",
      );
    }
  });

  app.post("/sign-in", async (c) => {
    requireOwnPage(c.req.raw);
    const { fields } = await readForm(c);
    const next = fields["next"];
    const token = (fields["token"] ?? "").trim();
    if (token === "")
      return page(c, { status: 422, error: "Enter the management token.", ...(next ? { next } : {}) });
    try {
      auth.checkToken(token, c.env.address);
    } catch (thrown) {
      return refused(c, thrown, "This is not the management token.", next);
    }
    return enter(c, safeNext(next));
  });

  app.post("/dashboard/sign-out", (c) => {
    const cookie = getCookie(c, STUDIO_COOKIE);
    if (cookie !== undefined) auth.endSession(cookie);
    cookies.drop(c, STUDIO_COOKIE);
    return c.redirect("/sign-in?out", 303);
  });

  app.post("/dashboard/theme", async (c) => {
    const theme = (await readForm(c)).fields["theme"];
    if (theme !== "auto" && theme !== "light" && theme !== "dark") {
      throw new AppError("invalid_request", "The theme is auto, light or dark.");
    }
    if (theme === "auto") cookies.drop(c, THEME_COOKIE);
    else cookies.set(c, THEME_COOKIE, theme, THEME_SECONDS);
    if (isPart(c)) {
      c.header("HX-Refresh", "true");
      return c.body(null, 200);
    }
    return c.redirect(back(c), 303);
  });
}
