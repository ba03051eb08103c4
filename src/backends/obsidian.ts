/**
 * Memories as notes of an Obsidian vault, by the Local REST API plugin: one note a memory, `Recollect/<uuid>.md`,
 * readable and editable by a person; what is edited there is seen here. The plugin knows no index of front matter, so
 * lists and searches ask it to evaluate a JsonLogic rule over the notes.
 */
import type { Memory } from "../memory/types.ts";
import { readNote, writeNote } from "./obsidian-note.ts";
import { passes, rankByWords, wordBeginnings } from "./rank.ts";
import { join, parseJson, send } from "./request.ts";
import type { Endpoint } from "./request.ts";
import { readRow } from "./row.ts";
import { BackendError } from "./types.ts";
import type {
  Found,
  Health,
  MemoryBackend,
  MemoryFilter,
  MemoryPage,
  MemoryPatch,
  SearchConfig,
} from "./types.ts";

export type ObsidianConfig = {
  /** `http://127.0.0.1:27123` without it. */
  baseUrl?: string | undefined;
  apiKey: string;
  /** Folder of the vault. */
  folder?: string | undefined;
  timeout?: number | undefined;
};

const FOLDER = "Recollect";
const NOTE = "application/vnd.olrapi.note+json";
/** The plugin compares the whole header, so there is no charset. */
const LOGIC = "application/vnd.olrapi.jsonlogic+json";
const READS_AT_ONCE = 8;
const MAX_WORDS = 16;

type Rule = Record<string, unknown>;

export class ObsidianBackend implements MemoryBackend {
  readonly id: string;
  readonly displayName: string;
  readonly whole = true;
  readonly #endpoint: Endpoint;
  readonly #folder: string;

  constructor(id: string, displayName: string, config: ObsidianConfig, allowed?: Endpoint["allowed"]) {
    this.id = id;
    this.displayName = displayName;
    this.#folder = config.folder ?? FOLDER;
    this.#endpoint = {
      displayName,
      baseUrl: config.baseUrl ?? "http://127.0.0.1:27123",
      headers: { authorization: `Bearer ${config.apiKey}` },
      timeoutMs: config.timeout ?? 30_000,
      ...(allowed ? { allowed } : {}),
    };
  }

  async create(memory: Memory): Promise<Memory> {
    await this.#write(memory);
    return memory;
  }

  async get(owner: string | null, id: string): Promise<Memory | null> {
    const memory = await this.#read(id);
    return owner === null || memory?.apiKeyId === owner ? memory : null;
  }

  async update(owner: string, id: string, patch: MemoryPatch): Promise<boolean> {
    const memory = await this.get(owner, id);
    if (!memory) return false;
    await this.#write({ ...memory, ...patch });
    return true;
  }

  /** For good, not into the vault's trash. */
  async delete(owner: string, id: string): Promise<boolean> {
    if (!(await this.get(owner, id))) return false;
    const answer = await send(this.#endpoint, "DELETE", this.#note(id, { permanent: "true" }));
    return answer.status !== 404;
  }

  async list(filter: MemoryFilter): Promise<MemoryPage> {
    const { apiKeyId, type, sessionId, q } = filter;
    // Only a search in the text needs the text of every note; else the headers do.
    const whole = q !== undefined;
    const found = await this.#evaluate(
      [
        equal("apiKeyId", apiKeyId ?? undefined),
        equal("type", type),
        equal("sessionId", sessionId),
        // The plugin reads a note's text only for rules that name `content`.
        whole ? { "!!": [{ var: "content" }] } : null,
      ],
      whole ? { var: "" } : { var: "frontmatter" },
    );
    const rows = found
      .map((note) => (whole ? readNote(note) : readRow({ ...(note as object), content: "" })))
      .filter((memory) => memory !== null)
      .filter((memory) => passes(memory, filter));
    const by = filter.orderBy ?? "createdAt";
    const sign = filter.orderDir === "asc" ? 1 : -1;
    rows.sort((a, b) => sign * (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0) || (a.id < b.id ? -1 : 1));
    const byType: Record<string, number> = {};
    for (const row of rows) byType[row.type] = (byType[row.type] ?? 0) + 1;
    const page = rows.slice(filter.offset, filter.offset + filter.limit);
    return {
      data: whole ? page : await this.#readAll(page.map((row) => row.id)),
      total: rows.length,
      byType,
    };
  }

  async byKey(owner: string, key: string): Promise<Memory | null> {
    const rules = [equal("apiKeyId", owner), equal("key", key), equal("status", "active")];
    const [found] = await this.#evaluate(rules, { var: "frontmatter.id" });
    return typeof found === "string" ? this.get(owner, found) : null;
  }

  async search(config: SearchConfig): Promise<Found[]> {
    const words = wordBeginnings(config.query, MAX_WORDS);
    if (words.length === 0) return [];
    const found = await this.#evaluate(
      [
        equal("apiKeyId", config.apiKeyId),
        equal("type", config.type),
        // A note's file holds its header too; the ranking below sees key and text alone.
        { regexp: [words.map(anyCase).join("|"), { var: "content" }] },
      ],
      { var: "" },
      config.signal,
    );
    const rows = found
      .map(readNote)
      .filter((memory) => memory !== null)
      // A note that a person made may say nothing of its status.
      .filter((m) => m.status === "active")
      .filter((m) => config.sessionId == null || m.sessionId === null || m.sessionId === config.sessionId);
    return rankByWords(config.query, rows, config.limit);
  }

  async health(): Promise<Health> {
    const started = performance.now();
    const took = (): number => performance.now() - started;
    try {
      const answer = await send(this.#endpoint, "GET", join(this.#endpoint.baseUrl, "/"));
      const { authenticated } = (answer.status === 404 ? {} : parseJson(this.#endpoint, answer)) as {
        authenticated?: unknown;
      };
      if (authenticated === true) return { ok: true, latencyMs: took() };
      return { ok: false, latencyMs: took(), error: `${this.displayName} does not accept the API key.` };
    } catch (thrown) {
      return { ok: false, latencyMs: took(), error: (thrown as Error).message };
    }
  }

  #note(id: string, query: Record<string, string> = {}): URL {
    const path = [...this.#folder.split("/"), `${id}.md`].map(encodeURIComponent).join("/");
    return join(this.#endpoint.baseUrl, `/vault/${path}`, query);
  }

  async #write(memory: Memory): Promise<void> {
    const answer = await send(this.#endpoint, "PUT", this.#note(memory.id), {
      body: writeNote(memory),
      headers: { "content-type": "text/markdown" },
    });
    if (answer.status === 404)
      throw new BackendError(`${this.displayName} answered with status 404.`, { status: 404 });
  }

  async #read(id: string): Promise<Memory | null> {
    const answer = await send(this.#endpoint, "GET", this.#note(id), { headers: { accept: NOTE } });
    return answer.status === 404 ? null : readNote(parseJson(this.#endpoint, answer));
  }

  async #readAll(ids: readonly string[]): Promise<Memory[]> {
    const out: Memory[] = [];
    for (let at = 0; at < ids.length; at += READS_AT_ONCE) {
      const read = await Promise.all(ids.slice(at, at + READS_AT_ONCE).map((id) => this.#read(id)));
      out.push(...read.filter((memory) => memory !== null));
    }
    return out;
  }

  /** What `result` gives for each note of the folder that passes all rules. */
  async #evaluate(rules: (Rule | null)[], result: Rule, signal?: AbortSignal): Promise<unknown[]> {
    const all = [
      { glob: [`${this.#folder}/*.md`, { var: "path" }] },
      ...rules.filter((rule) => rule !== null),
    ];
    const answer = await send(this.#endpoint, "POST", join(this.#endpoint.baseUrl, "/search/"), {
      body: JSON.stringify({ if: [{ and: all }, result, false] }),
      headers: { "content-type": LOGIC },
      ...(signal ? { signal } : {}),
    });
    if (answer.status === 404)
      throw new BackendError(`${this.displayName} answered with status 404.`, { status: 404 });
    const found = parseJson(this.#endpoint, answer);
    if (!Array.isArray(found))
      throw new BackendError(`${this.displayName} answered a search without an array.`);
    return (found as { result?: unknown }[]).map((one) => one.result);
  }
}

function equal(field: string, value: string | undefined): Rule | null {
  return value === undefined ? null : { "===": [{ var: `frontmatter.${field}` }, value] };
}

/** A pattern that finds a word in either case; the plugin's regular expressions have no flags. */
function anyCase(word: string): string {
  return Array.from(word)
    .map((c) => {
      const upper = c.toUpperCase();
      return upper !== c && upper.length === c.length ? `[${c}${upper}]` : RegExp.escape(c);
    })
    .join("");
}
