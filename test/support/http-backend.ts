// A strict memory service over REST, as the defaults of the generic backend describe it: bearer token, JSON bodies,
// no unknown query parameters, pages of at most 200, 404 for what is not there.
import type { Memory } from "../../src/memory/types.ts";
import { rankByWords } from "../../src/backends/rank.ts";

export interface HttpStandIn {
  url: string;
  rows: Map<string, Memory>;
  requests: string[];
  stop(): Promise<void>;
}

const listNames = new Set([
  "apiKeyId",
  "limit",
  "offset",
  "type",
  "sessionId",
  "orderBy",
  "orderDir",
  "options",
]);
const searchNames = new Set(["query", "apiKeyId", "limit", "strategy", "maxTokens", "type", "sessionId"]);
const refuse = (status: number, error: string): Response => Response.json({ error }, { status });

/** Below `base`; a second instance may use other names and paths. */
export function startHttpBackend(options: { apiKey: string; base?: string }): HttpStandIn {
  const { apiKey, base = "/api/v1" } = options;
  const rows = new Map<string, Memory>();
  const requests: string[] = [];

  function list(query: URLSearchParams): Response {
    for (const name of query.keys())
      if (!listNames.has(name)) return refuse(400, `unknown parameter ${name}`);
    const limit = Number(query.get("limit"));
    const offset = Number(query.get("offset"));
    if (!(limit >= 1 && limit <= 200) || !(offset >= 0))
      return refuse(400, "limit or offset is out of range");
    const { status, q } = JSON.parse(query.get("options") ?? "{}") as { status?: string; q?: string };
    const wants = (name: "apiKeyId" | "type" | "sessionId", row: Memory): boolean => {
      const value = query.get(name);
      return value === null || row[name] === value;
    };
    const needle = q?.toLowerCase();
    const found = [...rows.values()].filter(
      (row) =>
        wants("apiKeyId", row) &&
        wants("type", row) &&
        wants("sessionId", row) &&
        (status === undefined || row.status === status) &&
        (needle === undefined ||
          row.content.toLowerCase().includes(needle) ||
          (row.key ?? "").toLowerCase().includes(needle)),
    );
    const by = query.get("orderBy") === "updatedAt" ? "updatedAt" : "createdAt";
    const sign = query.get("orderDir") === "asc" ? 1 : -1;
    found.sort((a, b) => sign * (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0) || (a.id < b.id ? -1 : 1));
    const byType: Record<string, number> = {};
    for (const row of found) byType[row.type] = (byType[row.type] ?? 0) + 1;
    return Response.json({ data: found.slice(offset, offset + limit), total: found.length, byType });
  }

  function search(query: URLSearchParams): Response {
    for (const name of query.keys())
      if (!searchNames.has(name)) return refuse(400, `unknown parameter ${name}`);
    const session = query.get("sessionId");
    const type = query.get("type");
    const mine = [...rows.values()].filter(
      (row) =>
        row.apiKeyId === query.get("apiKeyId") &&
        row.status === "active" &&
        (type === null || row.type === type) &&
        (session === null || row.sessionId === null || row.sessionId === session),
    );
    const found = rankByWords(query.get("query") ?? "", mine, Number(query.get("limit") ?? 20));
    return Response.json(found.map(({ memory, score }) => ({ ...memory, score })));
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const url = new URL(request.url);
      requests.push(`${request.method} ${url.pathname}${url.search}`);
      if (!url.pathname.startsWith(`${base}/`)) return refuse(404, "no such path");
      if (request.headers.get("authorization") !== `Bearer ${apiKey}`) return refuse(401, "unauthorized");
      const path = url.pathname.slice(base.length);
      const body = async (): Promise<Record<string, unknown> | null> =>
        request.headers.get("content-type") === "application/json"
          ? ((await request.json()) as Record<string, unknown>)
          : null;
      if (path === "/health" && request.method === "GET") return Response.json({ status: "ok" });
      if (path === "/memories" && request.method === "GET") return list(url.searchParams);
      if (path === "/memories/search" && request.method === "GET") return search(url.searchParams);
      if (path === "/memories" && request.method === "POST") {
        const row = await body();
        if (
          typeof row?.["id"] !== "string" ||
          typeof row["content"] !== "string" ||
          typeof row["apiKeyId"] !== "string"
        )
          return refuse(400, "id, apiKeyId and content are needed");
        rows.set(row["id"], row as Memory);
        return Response.json(row, { status: 201 });
      }
      const id = /^\/memories\/([^/]+)$/.exec(path)?.[1];
      const row = id === undefined ? undefined : rows.get(decodeURIComponent(id));
      if (!row) return refuse(404, "not found");
      switch (request.method) {
        case "GET":
          return Response.json(row);
        case "PATCH": {
          const patch = await body();
          if (!patch || "id" in patch) return refuse(400, "a patch without id is needed");
          rows.set(row.id, { ...row, ...patch });
          return Response.json(rows.get(row.id));
        }
        case "DELETE":
          rows.delete(row.id);
          return new Response(null, { status: 204 });
        default:
          return refuse(405, "not allowed");
      }
    },
  });
  return { url: `http://127.0.0.1:${server.port}${base}`, rows, requests, stop: () => server.stop(true) };
}
