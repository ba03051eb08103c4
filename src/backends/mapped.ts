/** A foreign backend under our ids: what it calls a memory is kept in the sidecar, and never shown. */
import type { Database } from "bun:sqlite";
import { forgetIds, mapIds, memoryIdOf, remoteId } from "../db/backend-ids.ts";
import type { Memory } from "../memory/types.ts";
import type {
  Found,
  Health,
  MemoryBackend,
  MemoryFilter,
  MemoryPage,
  MemoryPatch,
  SearchConfig,
} from "./types.ts";

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class MappedBackend implements MemoryBackend {
  readonly id: string;
  readonly displayName: string;
  readonly whole: boolean;
  readonly byKey?: NonNullable<MemoryBackend["byKey"]>;
  readonly #db: Database;
  readonly #inner: MemoryBackend;

  constructor(db: Database, inner: MemoryBackend) {
    this.id = inner.id;
    this.displayName = inner.displayName;
    this.whole = inner.whole ?? false;
    this.#db = db;
    this.#inner = inner;
    const byKey = inner.byKey?.bind(inner);
    if (byKey)
      this.byKey = async (owner, key) => {
        const memory = await byKey(owner, key);
        return memory && this.#ours(memory);
      };
  }

  async create(memory: Memory): Promise<Memory> {
    const stored = await this.#inner.create(memory);
    if (stored.id !== memory.id) mapIds(this.#db, this.id, stored.id, memory.id);
    return { ...stored, id: memory.id };
  }

  async get(owner: string | null, id: string): Promise<Memory | null> {
    const memory = await this.#inner.get(owner, this.#theirs(id));
    return memory && { ...memory, id };
  }

  update(owner: string, id: string, patch: MemoryPatch): Promise<boolean> {
    return this.#inner.update(owner, this.#theirs(id), patch);
  }

  async delete(owner: string, id: string): Promise<boolean> {
    const done = await this.#inner.delete(owner, this.#theirs(id));
    forgetIds(this.#db, this.id, id);
    return done;
  }

  async list(filter: MemoryFilter): Promise<MemoryPage> {
    const page = await this.#inner.list(filter);
    return { ...page, data: page.data.map((memory) => this.#ours(memory)) };
  }

  async search(config: SearchConfig): Promise<Found[]> {
    const found = await this.#inner.search(config);
    return found.map((one) => ({ ...one, memory: this.#ours(one.memory) }));
  }

  health(): Promise<Health> {
    return this.#inner.health();
  }
  async migrate(): Promise<boolean> {
    return (await this.#inner.migrate?.()) ?? false;
  }
  async initialize(): Promise<void> {
    await this.#inner.initialize?.();
  }
  async shutdown(): Promise<void> {
    await this.#inner.shutdown?.();
  }

  #theirs(id: string): string {
    return remoteId(this.#db, this.id, id) ?? id;
  }

  /** A row that was made over there gets an id of ours when it has none that could be one. */
  #ours(memory: Memory): Memory {
    const known = memoryIdOf(this.#db, this.id, memory.id);
    if (known !== null) return { ...memory, id: known };
    if (uuid.test(memory.id)) return memory;
    const id = crypto.randomUUID();
    mapIds(this.#db, this.id, memory.id, id);
    return { ...memory, id };
  }
}
