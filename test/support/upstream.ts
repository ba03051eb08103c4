/**
 * A strict model server on loopback: checks every body against the published shapes, counts connections and shared
 * prefixes, and can refuse, stall, cut, lie and err as real ones do.
 */
import http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Wire } from "../../src/memory/conversation.ts";
import { events, json } from "./streams.ts";
import type { Reply } from "./streams.ts";
import { problem } from "./upstream-rules.ts";
import type { Rules } from "./upstream-rules.ts";

export interface Seen {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  body: Record<string, unknown>;
  raw: string;
  /** Refused by the rules with this sentence. */
  refused: string | null;
  /** The connection closed before the answer was whole. */
  aborted: boolean;
}

/** How one request is answered. Everything left out is what a good server does. */
export interface Plan {
  text?: string;
  tools?: { id?: string; name: string; arguments: string }[];
  refusal?: boolean;
  /** Instead of a reply: this status with this body (an object is JSON, "" is no body at all). */
  status?: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** After so many events (or half of a JSON body): nothing more, a closed socket, a clean end, an in-band error. */
  fault?: { kind: "stall" | "cut" | "end" | "error"; after: number };
  /** Never answer. */
  silent?: boolean;
  /** Leave out the terminator of the stream. */
  done?: false;
  /** Split the bytes of a stream into pieces of this size. */
  pieces?: number;
  /** Milliseconds between events. */
  every?: number;
  /** The bytes of the answer to write instead, head included. */
  raw?: Buffer[];
  usage?: false;
  contentType?: string;
}

export interface UpstreamOptions extends Partial<Rules> {
  key?: string;
  models?: Record<string, unknown>[] | null;
  reply?: (seen: Seen, count: number) => Plan | string | Promise<Plan | string>;
}

export type MockUpstream = Awaited<ReturnType<typeof startUpstream>>;

export async function startUpstream(options: UpstreamOptions = {}) {
  const rules: Rules = { roles: "anywhere", developer: false, streamOptions: true, extra: [], ...options };
  const seen: Seen[] = [];
  const prefixes = new Set<string>();
  const sockets = new Set<Socket>();
  let connections = 0;
  let count = 0;
  let reply = options.reply;

  const server = http.createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => void answer(request, response, Buffer.concat(parts)));
  });
  server.on("connection", (socket) => {
    connections++;
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;

  async function answer(
    request: http.IncomingMessage,
    response: http.ServerResponse,
    bytes: Buffer,
  ): Promise<void> {
    const full = request.url ?? "/";
    const path = full.split("?", 1)[0]!;
    const one: Seen = {
      method: request.method ?? "",
      path: full,
      headers: request.headers,
      body: {},
      raw: bytes.toString(),
      refused: null,
      aborted: false,
    };
    seen.push(one);
    response.on("error", () => {});
    response.on("close", () => {
      if (!response.writableFinished) one.aborted = true;
    });
    const send = (status: number, value: unknown, headers: Record<string, string> = {}) => {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      response.writeHead(status, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
        ...headers,
      });
      response.end(text);
    };
    const given = request.headers.authorization?.replace(/^Bearer /, "") ?? request.headers["x-api-key"];
    if (options.key !== undefined && given !== options.key) {
      return send(401, {
        error: {
          message: "Incorrect API key provided.",
          type: "invalid_request_error",
          param: null,
          code: "invalid_api_key",
        },
      });
    }
    if (request.headers["content-encoding"] !== undefined)
      return send(415, { error: { message: "encoding" } });
    if (path === "/v1/models" && request.method === "GET") {
      return options.models === null
        ? send(404, { error: { message: "Not Found" } })
        : send(200, { object: "list", data: options.models ?? [] });
    }
    const wire = wireOf(path);
    if (wire === null) return other(one, request, response, bytes);
    try {
      one.body = JSON.parse(one.raw) as Seen["body"];
    } catch {
      return send(400, { error: { message: "We could not parse the JSON body of your request." } });
    }
    if (wire === "messages" && !request.headers["anthropic-version"])
      one.refused = "anthropic-version: header is required";
    one.refused ??= problem(path, one.body, rules);
    if (one.refused !== null) {
      return send(400, {
        error: { message: one.refused, type: "invalid_request_error", param: null, code: null },
      });
    }
    const cached = countPrefix(one);
    if (path.endsWith("/count_tokens")) return send(200, { input_tokens: Math.ceil(one.raw.length / 4) });
    const planned = (await reply?.(one, count++)) ?? "Noted.";
    const plan: Plan = typeof planned === "string" ? { text: planned } : planned;
    if (plan.silent) return;
    if (plan.raw) {
      for (const part of plan.raw) request.socket.write(part);
      request.socket.end();
      return;
    }
    if (plan.status !== undefined) {
      const { body = { error: { message: "It failed.", type: "server_error", param: null, code: null } } } =
        plan;
      return send(plan.status, body, plan.headers);
    }
    const message: Reply = {
      id: `${wire === "messages" ? "msg" : wire === "responses" ? "resp" : "chatcmpl"}_${crypto.randomUUID().replaceAll("-", "")}`,
      model: String(one.body["model"]),
      text: plan.text ?? (plan.tools ? "" : "Noted."),
      refusal: plan.refusal ?? false,
      usage: {
        input: Math.max(cached.total, cached.shared),
        output: Math.ceil((plan.text ?? "").length / 4) + 1,
        cached: cached.shared,
      },
      tools: (plan.tools ?? []).map((tool, at) => ({ id: `call_${seen.length}_${at}`, ...tool })),
    };
    if (one.body["stream"] === true) await stream(wire, message, plan, one, response);
    else {
      const text = JSON.stringify(json(wire, plan.usage === false ? message : message));
      const whole = plan.usage === false ? text.replace(/,"usage":\{.*\}(?=\}$)/, "") : text;
      response.writeHead(200, {
        "content-type": plan.contentType ?? "application/json",
        "content-length": Buffer.byteLength(whole),
        "x-request-id": `req_${seen.length}`,
        "x-ratelimit-remaining-requests": "99",
        ...plan.headers,
      });
      if (!plan.fault) response.end(whole);
      else {
        response.write(whole.slice(0, whole.length / 2));
        if (plan.fault.kind !== "stall") setTimeout(() => request.socket.destroy(), 5);
      }
    }
  }

  async function stream(
    wire: Wire,
    message: Reply,
    plan: Plan,
    one: Seen,
    response: http.ServerResponse,
  ): Promise<void> {
    const options = one.body["stream_options"] as { include_usage?: boolean } | undefined;
    const all = events(wire, message, {
      usage: options?.include_usage === true && plan.usage !== false,
      ...(plan.done === false ? { done: false } : {}),
    });
    response.writeHead(200, {
      "content-type": plan.contentType ?? "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-request-id": `req_${seen.length}`,
      ...plan.headers,
    });
    response.flushHeaders();
    const { fault } = plan;
    const sent = all.slice(0, fault?.after ?? all.length);
    if (plan.pieces !== undefined) {
      const bytes = Buffer.from(sent.join(""));
      for (let at = 0; at < bytes.length; at += plan.pieces) {
        response.write(bytes.subarray(at, at + plan.pieces));
        await new Promise((resolve) => setImmediate(resolve));
      }
    } else {
      for (const event of sent) {
        if (one.aborted) return;
        response.write(event);
        if (plan.every !== undefined) await new Promise((resolve) => setTimeout(resolve, plan.every));
      }
    }
    if (!fault || fault.kind === "end") response.end();
    else if (fault.kind === "error") {
      response.end(
        `data: ${JSON.stringify({ error: { message: "The server had an error.", type: "server_error", code: null } })}\n\n`,
      );
    } else if (fault.kind === "cut") setTimeout(() => response.socket?.destroy(), 5);
  }

  /** Tokens of the longest beginning that an earlier request had as well. */
  function countPrefix(one: Seen): { shared: number; total: number } {
    const { body } = one;
    const list = Array.isArray(body["input"]) ? body["input"] : (body["messages"] ?? [body["input"]]);
    const parts = [body["tools"], body["system"], body["instructions"], ...(list as unknown[])].map((part) =>
      (JSON.stringify(part) ?? "").replace(/,?"cache_control":\{[^}]*\}/g, ""),
    );
    let text = String(body["model"]);
    let shared = 0;
    for (const part of parts) {
      text += `\n${part}`;
      if (prefixes.has(text)) shared = Math.ceil(text.length / 4);
      prefixes.add(text);
    }
    return { shared, total: Math.ceil(text.length / 4) };
  }

  async function other(
    one: Seen,
    request: http.IncomingMessage,
    response: http.ServerResponse,
    bytes: Buffer,
  ): Promise<void> {
    const planned = (await reply?.(one, count++)) ?? "Noted.";
    const plan: Plan = typeof planned === "string" ? {} : planned;
    if (plan.status !== undefined) {
      response.writeHead(plan.status, plan.headers);
      response.end(
        typeof plan.body === "string" || Buffer.isBuffer(plan.body)
          ? plan.body
          : JSON.stringify(plan.body ?? {}),
      );
      return;
    }
    response.writeHead(200, {
      "content-type": request.headers["content-type"] ?? "application/octet-stream",
      "x-request-id": "req_other",
    });
    response.end(bytes);
  }

  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    seen,
    /** Requests that were not for the list of models. */
    asked: () => seen.filter((one) => one.path !== "/v1/models"),
    last: () => seen.findLast((one) => one.path !== "/v1/models")!,
    connections: () => connections,
    /** Changes how the next requests are answered. */
    reply(next: UpstreamOptions["reply"]) {
      reply = next;
      count = 0;
    },
    rules,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

function wireOf(path: string): Wire | null {
  if (path === "/v1/chat/completions") return "chat";
  if (path === "/v1/responses") return "responses";
  return path === "/v1/messages" || path === "/v1/messages/count_tokens" ? "messages" : null;
}
