/**
 * A model hub on loopback, as strict as the real one: HEAD and GET of `/{repo}/resolve/main/{file}`, Range, git SHA-1
 * entity tags for small files; large ones have x-linked-etag and are redirected to another host (another port here).
 * What a test wants to go wrong is said by `faults`.
 */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

export interface Faults {
  /** Cut the connection after so many bytes of a body, once a number in the list. */
  cutAfter?: number[];
  /** Answer the next requests with these statuses. */
  statuses?: number[];
  /** Flip one byte of every large file. */
  damage?: boolean;
  /** Ignore Range. */
  noRange?: boolean;
  /** No entity tags. */
  noEtag?: boolean;
  /** `W/"…"` around entity tags. */
  weakEtag?: boolean;
  /** Refuse who has no such token. */
  token?: string;
  /** Send the header and then nothing. */
  silent?: boolean;
  /** More bytes than announced. */
  tooMuch?: boolean;
  /** Redirect everything to itself. */
  circle?: boolean;
  /** No file of this name. */
  absent?: string;
}

export interface Hub {
  readonly endpoint: string;
  readonly faults: Faults;
  /** `METHOD path range` of every request, that of the second host too. */
  readonly requests: string[];
  /** Bodies' bytes that left. */
  bytes(): number;
  /** Authorization headers the second host got. */
  readonly leaked: string[];
  close(): Promise<void>;
}

const LARGE = 1_000_000;
const ALIASES: Record<string, string> = { "minishlab/potion-base-8M": "recollect/static-minilm-256" };

export async function startHub(models: string): Promise<Hub> {
  const faults: Faults = {};
  const requests: string[] = [];
  const leaked: string[] = [];
  let sent = 0;
  let cdn = "";

  const send = (
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    headers: Record<string, string>,
  ): void => {
    let content = readFileSync(path);
    if (faults.damage === true && content.length > LARGE) {
      content = Buffer.from(content);
      content[content.length >> 1]! ^= 1;
    }
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? "");
    let from = 0;
    let status = 200;
    if (range !== null && faults.noRange !== true) {
      from = Number(range[1]);
      if (from >= content.length) {
        response.writeHead(416, { "content-range": `bytes */${content.length}` }).end();
        return;
      }
      status = 206;
      headers["content-range"] = `bytes ${from}-${content.length - 1}/${content.length}`;
    }
    const body = content.subarray(from);
    if (faults.tooMuch === true && request.method === "GET") response.writeHead(status, headers);
    else response.writeHead(status, { ...headers, "content-length": String(body.length) });
    if (request.method === "HEAD") {
      response.end();
      return;
    }
    if (faults.silent === true) {
      response.flushHeaders();
      return;
    }
    const cut = body.length > LARGE ? faults.cutAfter?.shift() : undefined;
    if (cut === undefined) {
      sent += body.length;
      response.end(faults.tooMuch === true ? Buffer.concat([body, body]) : body);
      return;
    }
    sent += cut;
    response.write(body.subarray(0, cut), () => setImmediate(() => response.destroy()));
  };

  const refused = (request: IncomingMessage, response: ServerResponse): boolean => {
    const status = faults.statuses?.shift();
    const wrongToken =
      faults.token !== undefined && request.headers.authorization !== `Bearer ${faults.token}`;
    const verdict =
      status ??
      (wrongToken ? 401 : undefined) ??
      (request.headers["accept-encoding"] === "identity" ? undefined : 400);
    if (verdict !== undefined) response.writeHead(verdict).end("a page that nobody asked for");
    return verdict !== undefined;
  };

  const note = (request: IncomingMessage): void => {
    const range = request.headers.range === undefined ? "" : ` ${request.headers.range}`;
    requests.push(`${request.method} ${request.url}${range}`);
  };

  const main = createServer((request, response) => {
    note(request);
    if (refused(request, response)) return;
    const match = /^\/([^/]+\/[^/]+)\/resolve\/main\/(.+)$/.exec(request.url ?? "");
    if (faults.circle === true) {
      response.writeHead(302, { location: request.url! }).end();
      return;
    }
    const [, repo = "", file = ""] = match ?? [];
    const path = join(models, ALIASES[repo] ?? repo, file);
    if (match === null || file.includes("..") || file === faults.absent || !isFile(path)) {
      response.writeHead(404).end("Entry not found");
      return;
    }
    const content = readFileSync(path);
    const quote = (tag: string): string => (faults.weakEtag === true ? `W/"${tag}"` : `"${tag}"`);
    if (content.length > LARGE) {
      const sha = createHash("sha256").update(content).digest("hex");
      const linked: Record<string, string> =
        faults.noEtag === true
          ? {}
          : { "x-linked-etag": quote(sha), "x-linked-size": String(content.length) };
      response.writeHead(302, { ...linked, location: `${cdn}/blob${request.url}` }).end();
      return;
    }
    const sha = createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
    send(request, response, path, faults.noEtag === true ? {} : { etag: quote(sha) });
  });

  const second = createServer((request, response) => {
    note(request);
    if (request.headers.authorization !== undefined) leaked.push(request.headers.authorization);
    const [, repo = "", file = ""] =
      /^\/blob\/([^/]+\/[^/]+)\/resolve\/main\/(.+)$/.exec(request.url ?? "") ?? [];
    send(request, response, join(models, ALIASES[repo] ?? repo, file), { etag: '"a-host-of-its-own"' });
  });

  const listen = (server: typeof main): Promise<string> =>
    new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () =>
        resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
      );
    });
  const endpoint = await listen(main);
  cdn = await listen(second);
  return {
    endpoint,
    faults,
    requests,
    leaked,
    bytes: () => sent,
    async close() {
      for (const server of [main, second]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
