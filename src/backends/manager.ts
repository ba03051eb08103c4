/**
 * One primary backend and its fallbacks. Created and listed is in the primary alone; what the primary does not have is
 * looked for in the fallbacks; updates and deletions follow there in the background; a search goes on to the next
 * fallback when one fails.
 */
import type { Memory } from "../memory/types.ts";
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

export type BackendHealth = Health & { id: string; displayName: string; checkedAt: string };

export type ManagerDeps = {
  /** Queues what a fallback has still to be told: the state of one memory. */
  synchronise: (backendId: string, owner: string, memoryId: string) => void;
  now: () => number;
};

export class MemoryManager {
  readonly #backends = new Map<string, MemoryBackend>();
  readonly #deps: ManagerDeps;
  #primary: MemoryBackend | null = null;
  #fallbacks: MemoryBackend[] = [];
  #health = new Map<string, BackendHealth>();

  constructor(deps: ManagerDeps) {
    this.#deps = deps;
  }

  register(backend: MemoryBackend): void {
    this.#backends.set(backend.id, backend);
  }

  /** Ends a backend and forgets it. */
  async unregister(id: string): Promise<void> {
    const backend = this.#backends.get(id);
    this.#backends.delete(id);
    this.#health.delete(id);
    await backend?.shutdown?.();
  }

  has(id: string): boolean {
    return this.#backends.has(id);
  }
  ids(): string[] {
    return [...this.#backends.keys()];
  }

  /** Throws a sentence that names an id nobody registered. */
  configure(primary: string, fallbacks: readonly string[]): void {
    this.#primary = this.#named(primary);
    this.#fallbacks = fallbacks.filter((id) => id !== primary).map((id) => this.#named(id));
  }

  get primary(): MemoryBackend {
    if (!this.#primary) throw new BackendError("No primary backend is configured.");
    return this.#primary;
  }
  get fallbacks(): readonly MemoryBackend[] {
    return this.#fallbacks;
  }

  create(memory: Memory): Promise<Memory> {
    return this.primary.create(memory);
  }

  /** From the primary, else from the first fallback that has it. Throws the primary's error when nobody does. */
  async get(owner: string | null, id: string): Promise<{ memory: Memory; from: string } | null> {
    let failure: unknown = null;
    for (const backend of [this.primary, ...this.#fallbacks]) {
      try {
        const memory = await backend.get(owner, id);
        if (memory) return { memory, from: backend.id };
      } catch (thrown) {
        failure ??= thrown;
      }
    }
    if (failure !== null) throw failure;
    return null;
  }

  async update(owner: string, id: string, patch: MemoryPatch): Promise<boolean> {
    const done = await this.primary.update(owner, id, patch);
    this.#tell(owner, id);
    return done;
  }

  async delete(owner: string, id: string): Promise<boolean> {
    const done = await this.primary.delete(owner, id);
    this.#tell(owner, id);
    return done;
  }

  list(filter: MemoryFilter): Promise<MemoryPage> {
    return this.primary.list(filter);
  }

  /** In the order of the backend that answered; why the ones before it did not is in `failed`. */
  async search(config: SearchConfig): Promise<{ found: Found[]; from: string; failed: string[] }> {
    const failed: string[] = [];
    let failure: unknown = null;
    for (const backend of [this.primary, ...this.#fallbacks]) {
      try {
        return { found: await backend.search(config), from: backend.id, failed };
      } catch (thrown) {
        if (config.signal?.aborted) throw thrown;
        failure ??= thrown;
        failed.push(thrown instanceof Error ? thrown.message : `${backend.displayName} failed.`);
      }
    }
    throw failure;
  }

  /** Asks every registered backend at once. */
  async check(): Promise<BackendHealth[]> {
    const all = await Promise.all(
      [...this.#backends.values()].map(async (backend) => {
        const health = await backend.health();
        const checkedAt = new Date(this.#deps.now()).toISOString();
        return { id: backend.id, displayName: backend.displayName, ...health, checkedAt };
      }),
    );
    this.#health = new Map(all.map((one) => [one.id, one]));
    return all;
  }

  /** What the last check found. */
  health(): BackendHealth[] {
    return [...this.#health.values()];
  }

  async shutdown(): Promise<void> {
    await Promise.allSettled([...this.#backends.values()].map(async (backend) => backend.shutdown?.()));
  }

  #named(id: string): MemoryBackend {
    const backend = this.#backends.get(id);
    if (!backend) throw new BackendError(`There is no backend ${id}; known: ${this.ids().join(", ")}.`);
    return backend;
  }

  #tell(owner: string, id: string): void {
    for (const backend of this.#fallbacks) this.#deps.synchronise(backend.id, owner, id);
  }
}
