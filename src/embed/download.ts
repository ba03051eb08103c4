/**
 * One file of a model hub: resumable, checked against the size and hash the hub states, under a temporary name until
 * then. `/{repo}/resolve/{revision}/{file}`; large files are redirected to another host, which gets no token.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs";

export interface HubOptions {
  readonly endpoint: string;
  readonly token: string | null;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Longest silence of the hub. */
  readonly idleMs?: number;
  /** Wait before the next try. */
  readonly retryMs?: number;
}

/** What the hub says about a file before it sends it. */
export interface RemoteFile {
  readonly url: string;
  /** Path inside the repository. */
  readonly file: string;
  /** Bytes, null when the hub does not say. */
  readonly size: number | null;
  /** Normalised entity tag; empty when there is none. */
  readonly etag: string;
}

/** A download that failed, in one sentence that says what to do. `again` tells whether another try may help. */
export class DownloadError extends Error {
  readonly again: boolean;
  readonly status: number | null;
  constructor(message: string, options: { again: boolean; status?: number; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = "DownloadError";
    this.again = options.again;
    this.status = options.status ?? null;
  }
}

const TRIES = 5;
/** A hub that cannot be reached at all. */
const FIRST_TRIES = 2;
const REDIRECTS = 5;

/** Asks for size and hash. Null: the repository has no such file. */
export async function describeFile(
  hub: HubOptions,
  repo: string,
  file: string,
  signal?: AbortSignal,
): Promise<RemoteFile | null> {
  const url = `${hub.endpoint.replace(/\/+$/, "")}/${repo}/resolve/main/${file}`;
  return await persist(
    hub,
    signal,
    async () => {
      const idle = idleSignal(hub, signal);
      try {
        let at = url;
        for (let hops = 0; hops <= REDIRECTS; hops++) {
          const response = await ask(hub, at, "HEAD", {}, idle.signal);
          const { headers, status } = response;
          const linked = headers.get("x-linked-etag");
          const location = status >= 300 && status < 400 ? headers.get("location") : null;
          if (location !== null && linked === null) {
            at = new URL(location, at).href;
            continue;
          }
          if (status === 404) return null;
          if (status >= 400) throw refusal(hub, repo, status);
          const size = Number(
            headers.get("x-linked-size") ?? (location === null ? headers.get("content-length") : null),
          );
          return {
            url,
            file,
            size: Number.isSafeInteger(size) && size > 0 ? size : null,
            etag: normalEtag(linked ?? headers.get("etag")),
          };
        }
        throw new DownloadError(`${hostOf(url)} redirects in a circle.`, { again: false });
      } catch (error) {
        throw idle.explain(error, url);
      } finally {
        idle.end();
      }
    },
    FIRST_TRIES,
  );
}

/**
 * Brings the file to `path`. A half file of the same entity tag beside it is continued, and stays when this fails;
 * a damaged one does not. `progress` gets the bytes at hand so far.
 */
export async function downloadFile(
  hub: HubOptions,
  remote: RemoteFile,
  path: string,
  progress: (bytes: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  const part = `${path}.part`;
  await persist(hub, signal, async () => {
    const before = sizeOf(part);
    try {
      if (remote.size === null || before < remote.size) await fetchInto(hub, remote, part, progress, signal);
    } catch (error) {
      const moved = sizeOf(part) > before;
      if (error instanceof DownloadError && error.again && moved) throw new Progress(error);
      throw error;
    }
  });
  const damage = await damageOf(part, remote);
  if (damage !== null) {
    rmSync(part, { force: true });
    throw new DownloadError(`${remote.file} arrived damaged (${damage}). Nothing was kept; try again.`, {
      again: true,
    });
  }
  const handle = openSync(part, "r+");
  fsyncSync(handle);
  closeSync(handle);
  renameSync(part, path);
}

async function fetchInto(
  hub: HubOptions,
  remote: RemoteFile,
  part: string,
  progress: (bytes: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  const idle = idleSignal(hub, signal);
  let handle: number | null = null;
  try {
    let at = sizeOf(part);
    const headers: Record<string, string> = at > 0 ? { range: `bytes=${at}-` } : {};
    const response = await followed(hub, remote.url, headers, idle.signal);
    if (response.status === 416) {
      rmSync(part, { force: true });
      throw new DownloadError(`${hostOf(remote.url)} cannot continue the download; it starts anew.`, {
        again: true,
      });
    }
    if (response.status >= 400) throw refusal(hub, remote.file, response.status);
    if (response.status !== 206 || !startsAt(response, at)) at = 0;
    if (at === 0 && existsSync(part)) truncateSync(part, 0);
    handle = openSync(part, "a", 0o600);
    progress(at);
    for await (const chunk of response.body ?? []) {
      idle.alive();
      if (remote.size !== null && at + chunk.byteLength > remote.size) {
        throw new DownloadError(`${hostOf(remote.url)} sends more of ${remote.file} than it announced.`, {
          again: false,
        });
      }
      for (let done = 0; done < chunk.byteLength;) done += writeSync(handle, chunk, done);
      at += chunk.byteLength;
      progress(at);
    }
    if (remote.size !== null && at < remote.size) {
      throw new DownloadError(
        `The connection to ${hostOf(remote.url)} broke after ${megabytes(at)} of ${megabytes(remote.size)} MB of ${remote.file}. Try again: the download continues from there.`,
        { again: true },
      );
    }
  } catch (error) {
    throw idle.explain(error, remote.url);
  } finally {
    idle.end();
    if (handle !== null) closeSync(handle);
  }
}

/** Follows redirects by hand, so that the token goes to the hub alone. */
async function followed(hub: HubOptions, url: string, headers: Record<string, string>, signal: AbortSignal) {
  let at = url;
  for (let hops = 0; hops <= REDIRECTS; hops++) {
    const response = await ask(hub, at, "GET", headers, signal);
    const location =
      response.status >= 300 && response.status < 400 ? response.headers.get("location") : null;
    if (location === null) return response;
    await response.body?.cancel().catch(() => undefined);
    at = new URL(location, at).href;
  }
  throw new DownloadError(`${hostOf(url)} redirects in a circle.`, { again: false });
}

async function ask(
  hub: HubOptions,
  url: string,
  method: string,
  headers: Record<string, string>,
  signal: AbortSignal,
) {
  const send = hub.fetch ?? fetch;
  const own = hub.token !== null && URL.parse(url)?.origin === URL.parse(hub.endpoint)?.origin;
  return await send(url, {
    method,
    redirect: "manual",
    signal,
    headers: {
      "accept-encoding": "identity",
      "user-agent": "recollect",
      ...headers,
      ...(own ? { authorization: `Bearer ${hub.token}` } : {}),
    },
  });
}

function startsAt(response: Response, at: number): boolean {
  const range = response.headers.get("content-range");
  return range === null || range.startsWith(`bytes ${at}-`);
}

function refusal(hub: HubOptions, what: string, status: number): DownloadError {
  const host = hostOf(hub.endpoint);
  const again = status === 429 || status >= 500;
  const sentence =
    status === 401 || status === 403
      ? `${host} refuses ${what} (${status}). Set HF_TOKEN, or bring the files with: recollect model import DIR`
      : `${host} has no ${what} for us (${status}).`;
  return new DownloadError(again ? `${host} failed (${status}). Try again later.` : sentence, {
    again,
    status,
  });
}

/** Another try moved on: it does not count against the tries that are left. */
class Progress extends Error {
  readonly error: DownloadError;
  constructor(error: DownloadError) {
    super(error.message);
    this.error = error;
  }
}

async function persist<T>(
  hub: HubOptions,
  signal: AbortSignal | undefined,
  run: () => Promise<T>,
  silentTries = TRIES,
): Promise<T> {
  let failures = 0;
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await run();
    } catch (thrown) {
      const moved = thrown instanceof Progress;
      const error = moved ? thrown.error : thrown;
      failures = moved ? 1 : failures + 1;
      if (!(error instanceof DownloadError) || !error.again) throw error;
      if (failures >= (error.status === null ? silentTries : TRIES)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, (hub.retryMs ?? 500) * failures));
  }
}

/** Ends what has been silent for too long. */
function idleSignal(hub: HubOptions, signal: AbortSignal | undefined) {
  const idleMs = hub.idleMs ?? 30_000;
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), idleMs);
  return {
    signal: signal === undefined ? silent.signal : AbortSignal.any([signal, silent.signal]),
    alive() {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), idleMs);
    },
    end: () => clearTimeout(timer),
    explain(error: unknown, url: string): unknown {
      if (error instanceof DownloadError) return error;
      if (signal?.aborted === true) return signal.reason;
      const code = (error as NodeJS.ErrnoException | null)?.code;
      if (code === "ENOSPC" || code === "EDQUOT") {
        return new DownloadError("The disk is full. Free some space and try again: the download continues.", {
          again: false,
          cause: error,
        });
      }
      if (code === "EACCES" || code === "EROFS" || code === "EPERM") {
        return new DownloadError(`The model folder cannot be written (${code}).`, {
          again: false,
          cause: error,
        });
      }
      const what = silent.signal.aborted ? `was silent for ${idleMs / 1000} s` : "could not be reached";
      return new DownloadError(
        `${hostOf(url)} ${what}. Try again, set HF_ENDPOINT to a mirror, or bring the files with: recollect model import DIR`,
        { again: true, cause: error },
      );
    },
  };
}

/** What does not fit what the hub said, or null. 64 hex digits are the SHA-256, 40 the git blob SHA-1, else size only. */
async function damageOf(path: string, { size, etag }: RemoteFile): Promise<string | null> {
  const actual = sizeOf(path);
  if (size !== null && actual !== size) return `${actual} bytes instead of ${size}`;
  const kind = /^[0-9a-f]{64}$/.test(etag) ? "sha256" : /^[0-9a-f]{40}$/.test(etag) ? "sha1" : null;
  if (kind === null) return null;
  const hasher = new Bun.CryptoHasher(kind);
  if (kind === "sha1") hasher.update(`blob ${actual}\0`);
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk);
  return hasher.digest("hex") === etag
    ? null
    : `another ${kind === "sha256" ? "SHA-256" : "SHA-1"} than the hub states`;
}

function normalEtag(etag: string | null): string {
  return (etag ?? "").trim().replace(/^W\//, "").replaceAll('"', "").toLowerCase();
}

export function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? "the hub";
}
