/** The Studio as a browser without script sees it: a cookie, forms, redirects, and htmx's headers on request. */
import type { Appliance } from "./appliance.ts";

export type Page = { status: number; html: string; headers: Headers; location: string | null };

export type Visitor = {
  cookie: string;
  get(path: string, options?: { part?: boolean; from?: string }): Promise<Page>;
  /** Sends a form from one of our own pages. */
  post(
    path: string,
    fields: Record<string, string | string[]>,
    options?: { part?: boolean; from?: string; headers?: Record<string, string> },
  ): Promise<Page>;
};

export const cookieOf = (headers: Headers, name: string): string | undefined =>
  headers
    .getSetCookie()
    .find((line) => line.startsWith(`${name}=`))
    ?.split(";")[0];

async function read(response: Response): Promise<Page> {
  return {
    status: response.status,
    html: await response.text(),
    headers: response.headers,
    location: response.headers.get("location"),
  };
}

/** Signs in with the token; flash cookies are carried along, as a browser does. */
export async function signIn(box: Appliance, token = box.token): Promise<Visitor> {
  const jar = new Map<string, string>();
  const keep = (headers: Headers) => {
    for (const line of headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const [name = "", ...value] = pair.split("=");
      if (/max-age=0/i.test(line) || value.join("=") === "") jar.delete(name);
      else jar.set(name, value.join("="));
    }
  };
  const visitor: Visitor = {
    get cookie() {
      return [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    },
    async get(path, { part = false, from } = {}) {
      const response = await fetch(box.url + path, {
        redirect: "manual",
        headers: {
          cookie: visitor.cookie,
          ...(part ? { "HX-Request": "true", "HX-Request-Type": "partial" } : {}),
          ...(from ? { "HX-Current-URL": box.url + from } : {}),
        },
      });
      keep(response.headers);
      return read(response);
    },
    async post(path, fields, { part = false, from = "/dashboard/memory", headers = {} } = {}) {
      const body = new URLSearchParams();
      for (const [name, value] of Object.entries(fields))
        for (const one of [value].flat()) body.append(name, one);
      const response = await fetch(box.url + path, {
        method: "POST",
        redirect: "manual",
        headers: {
          cookie: visitor.cookie,
          "sec-fetch-site": "same-origin",
          origin: box.url,
          referer: box.url + from,
          ...(part
            ? { "HX-Request": "true", "HX-Request-Type": "partial", "HX-Current-URL": box.url + from }
            : {}),
          ...headers,
        },
        body,
      });
      keep(response.headers);
      return read(response);
    },
  };
  await visitor.post("/sign-in", { token });
  return visitor;
}

/** Stores a memory through the API and gives its id. */
export async function remember(
  box: Appliance,
  content: string,
  more: Record<string, unknown> = {},
): Promise<string> {
  const { status, body } = await box.call("POST", "/api/memory", { content, apiKeyId: box.keyId, ...more });
  if (status > 201) throw new Error(`storing failed: ${JSON.stringify(body)}`);
  return (body as { id: string }).id;
}
