// A stand-in for Obsidian with the Local REST API plugin (5.1): the used part of its HTTP API, strict about paths,
// headers, content types and rules, with the plugin's error bodies. Front matter is parsed as YAML, as Obsidian does.

export interface ObsidianStandIn {
  url: string;
  /** Files by vault path. A test edits them as a person would. */
  files: Map<string, string>;
  requests: string[];
  stop(): Promise<void>;
}

const messages: Record<number, string> = {
  40101:
    "Authorization required.  Find your API Key in the 'Local REST API with MCP' section of your Obsidian settings.",
  40010:
    "Incoming content must be text data and have an appropriate text/* Content-type header set (e.g. text/markdown).",
  40011:
    "Content-Type header required; this API accepts data in multiple content-types and you must indicate the content-type of your request body via the Content-Type header.",
  40012: "Unknown or invalid Content-Type specified in Content-Type header.",
  40021: "Path traversal is not allowed. Paths must be relative and within the vault.",
  40070: "The query you provided could not be processed.",
  40400: "Not Found",
  40500: "Method Not Allowed",
  40510: "Request method is valid only for file paths, not directories.",
};
const refuse = (errorCode: number, more = ""): Response =>
  Response.json(
    { errorCode, message: (messages[errorCode] ?? "Error") + (more && `\n${more}`) },
    { status: Math.floor(errorCode / 100) },
  );

interface Note {
  path: string;
  frontmatter: Record<string, unknown>;
  tags: string[];
  stat: { ctime: number; mtime: number; size: number };
  content?: string;
}

function noteOf(path: string, text: string, content: boolean): Note {
  const header = /^---[^\S\n]*\r?\n([\s\S]*?)\r?\n---[^\S\n]*(?:\r?\n|$)/.exec(text)?.[1];
  let frontmatter: Record<string, unknown> = {};
  try {
    const parsed: unknown = header === undefined ? {} : Bun.YAML.parse(header);
    if (typeof parsed === "object" && parsed !== null) frontmatter = parsed as Record<string, unknown>;
  } catch {
    // Obsidian shows no properties for a header it cannot read.
  }
  return {
    path,
    frontmatter,
    tags: [],
    stat: { ctime: 0, mtime: 0, size: text.length },
    ...(content ? { content: text } : {}),
  };
}

/** The operations of json-logic-js and of the plugin that are used; any other is refused, as the library does. */
function apply(rule: unknown, data: unknown): unknown {
  if (typeof rule !== "object" || rule === null || Array.isArray(rule)) return rule;
  const [entry, ...more] = Object.entries(rule);
  if (entry === undefined || more.length > 0) return rule;
  const [operation, given] = entry;
  const args = Array.isArray(given) ? given : [given];
  switch (operation) {
    case "var": {
      const path = String(args[0] ?? "");
      if (path === "") return data;
      return path
        .split(".")
        .reduce<unknown>(
          (at, name) => (at as Record<string, unknown> | null | undefined)?.[name] ?? null,
          data,
        );
    }
    case "if":
      return apply(args[0], data) ? apply(args[1], data) : apply(args[2], data);
    case "and": {
      let last: unknown = null;
      for (const one of args) if (!(last = apply(one, data))) return last;
      return last;
    }
    case "!!":
      return Boolean(apply(args[0], data));
    case "===":
      return apply(args[0], data) === apply(args[1], data);
    case "glob": {
      const [pattern, value] = args.map((a) => apply(a, data));
      const source = String(pattern)
        .replaceAll(/[.+^${}()|[\]\\]/g, "\\$&")
        .replaceAll("*", ".*")
        .replaceAll("?", ".");
      return typeof value === "string" && new RegExp(`^${source}$`).test(value);
    }
    case "regexp": {
      const [pattern, value] = args.map((a) => apply(a, data));
      return typeof value === "string" && new RegExp(String(pattern)).test(value);
    }
    default:
      throw new Error(`Unrecognized operation ${operation}`);
  }
}

const truthy = (value: unknown): boolean =>
  value != null &&
  (Array.isArray(value)
    ? value.length > 0
    : typeof value === "object"
      ? Object.keys(value).length > 0
      : Boolean(value));

export function startObsidian(options: { apiKey: string }): ObsidianStandIn {
  const files = new Map<string, string>();
  const requests: string[] = [];

  async function search(request: Request): Promise<Response> {
    const type = request.headers.get("content-type");
    if (type === null) return refuse(40011);
    if (type !== "application/vnd.olrapi.jsonlogic+json") return refuse(40012);
    try {
      const rule = (await request.json()) as unknown;
      const content = JSON.stringify(rule).includes('"content"');
      const found: { filename: string; result: unknown }[] = [];
      for (const [path, text] of files) {
        if (!path.endsWith(".md")) continue;
        const result = apply(rule, noteOf(path, text, content));
        if (truthy(result)) found.push({ filename: path, result });
      }
      return Response.json(found);
    } catch (error) {
      return refuse(40070, String(error));
    }
  }

  async function vault(request: Request, segments: string[], query: URLSearchParams): Promise<Response> {
    if (segments.some((s) => s === ".." || s.startsWith("../"))) return refuse(40021);
    // A segment that holds a slash can name no file.
    if (segments.some((s) => s.includes("/"))) return refuse(40400);
    const path = segments.join("/");
    switch (request.method) {
      case "GET": {
        const text = files.get(path);
        if (text === undefined) {
          const inside = [...files.keys()].filter((f) =>
            f.startsWith(path === "" || path.endsWith("/") ? path : `${path}/`),
          );
          return inside.length > 0 ? Response.json({ files: inside }) : refuse(40400);
        }
        if (request.headers.get("accept") === "application/vnd.olrapi.note+json")
          return new Response(JSON.stringify(noteOf(path, text, true), null, 2), {
            headers: { "content-type": "application/vnd.olrapi.note+json" },
          });
        return new Response(text, { headers: { "content-type": "text/markdown; charset=utf-8" } });
      }
      case "PUT": {
        if (path === "" || path.endsWith("/")) return refuse(40510);
        if (!request.headers.get("content-type")?.startsWith("text/")) return refuse(40010);
        files.set(path, await request.text());
        return new Response(null, { status: 204 });
      }
      case "DELETE": {
        if (path === "" || path.endsWith("/")) return refuse(40510);
        const permanent = query.get("permanent");
        if (permanent !== null && permanent !== "true" && permanent !== "false") return refuse(40000);
        const text = files.get(path);
        if (text === undefined) return refuse(40400);
        files.delete(path);
        if (permanent !== "true") files.set(`.trash/${path}`, text);
        return new Response(null, { status: 204 });
      }
      default:
        return refuse(40500);
    }
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const url = new URL(request.url);
      requests.push(`${request.method} ${url.pathname}${url.search}`);
      const authenticated = request.headers.get("authorization") === `Bearer ${options.apiKey}`;
      if (url.pathname === "/" && request.method === "GET")
        return Response.json({
          status: "OK",
          service: "Obsidian Local REST API",
          authenticated,
          versions: { obsidian: "1.13.1", self: "5.1.0" },
        });
      if (!authenticated) return refuse(40101);
      if (url.pathname === "/search/" && request.method === "POST") return search(request);
      if (url.pathname.startsWith("/vault/"))
        return vault(
          request,
          url.pathname.slice("/vault/".length).split("/").map(decodeURIComponent),
          url.searchParams,
        );
      return refuse(40400);
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, files, requests, stop: () => server.stop(true) };
}
