/** The engine's `memories` calls, by way of the primary backend. With primary `sqlite` each is the local call itself. */
import { AppError } from "../error.ts";
import type { createMemories } from "../memory/lifecycle.ts";
import type { ListInput, ListResult } from "../memory/listing.ts";
import { memoryTypes } from "../memory/types.ts";
import type { Memory } from "../memory/types.ts";
import type { Backends } from "./part.ts";
import type { MemoryBackend, MemoryFilter } from "./types.ts";

export type LocalMemories = Omit<ReturnType<typeof createMemories>, "forgetRows">;

export function routeMemories(local: LocalMemories, backends: Backends): LocalMemories {
  /** The sidecar's row as the primary has it now: 404 when it has none. */
  const current = (owner: string | null, id: string): Promise<Memory> => backends.get(owner, id);

  /** A key that another appliance's memory holds is taken over first, so that this is an update of it. */
  async function adopt(primary: MemoryBackend, owner: string, key: string): Promise<void> {
    try {
      const holder = await primary.byKey?.(owner, key);
      if (holder) backends.absorb(primary, holder);
    } catch {
      // The write that follows finds out whether the primary is down, and says so.
    }
  }

  async function list(primary: MemoryBackend, input: ListInput): Promise<ListResult> {
    const filter = filterOf(primary, input);
    const { stats } = await local.list({ ...input, limit: 1, offset: 0 });
    let page;
    try {
      page = await primary.list(filter);
    } catch (thrown) {
      throw new AppError(
        "unavailable",
        `The memory backend ${primary.displayName} cannot be used now: ${(thrown as Error).message}`,
        {
          cause: thrown,
        },
      );
    }
    const data = page.data
      .map((memory) => backends.absorb(primary, memory))
      .filter((memory) => memory !== null)
      .filter(
        (m) =>
          (input.owner === null || m.apiKeyId === input.owner) &&
          (input.status === undefined || m.status === input.status),
      );
    const byType = Object.fromEntries(
      memoryTypes.map((type) => [type, page.byType[type] ?? 0]),
    ) as ListResult["stats"]["byType"];
    return { data, total: page.total, stats: { ...stats, total: page.total, byType } };
  }

  return {
    ...local,
    async create(input) {
      await backends.configure();
      const primary = backends.foreign();
      if (!primary) return local.create(input);
      if (input.key != null) await adopt(primary, input.owner, input.key);
      const id = input.id ?? crypto.randomUUID();
      return backends.through(input.owner, () => local.create({ ...input, id }));
    },
    async get(input) {
      await backends.configure();
      return backends.foreign() ? current(input.owner, input.id) : local.get(input);
    },
    async update(input) {
      await backends.configure();
      if (!backends.foreign()) return local.update(input);
      await current(input.owner, input.id);
      return backends.through(input.owner, () => local.update(input));
    },
    async remove(input) {
      await backends.configure();
      if (!backends.foreign()) return local.remove(input);
      const memory = await current(input.owner, input.id);
      return backends.removeThrough(memory, () => local.remove(input));
    },
    async list(input) {
      await backends.configure();
      const primary = backends.foreign();
      return primary ? list(primary, input) : local.list(input);
    },
    async bulkDelete(input) {
      await backends.configure();
      const primary = backends.foreign();
      if (!primary) return local.bulkDelete(input);
      const { selection, owner } = input;
      if ("ids" in selection) for (const id of selection.ids) await current(owner, id).catch(() => null);
      else await backends.takeOver(owner);
      const result = await local.bulkDelete(input);
      // The count is true at once; the primary is told of each, and what it cannot take now follows when it is back.
      if (result.deleted > 0) await backends.drained();
      return result;
    },
    async history(input) {
      await backends.configure();
      if (backends.foreign()) await current(input.owner, input.id);
      return local.history(input);
    },
    async restore(input) {
      await backends.configure();
      if (backends.foreign()) await current(input.owner, input.id);
      return backends.through(input.owner, () => local.restore(input));
    },
    approve: (input) => backends.through(input.owner, () => local.approve(input)),
    reject: (input) => backends.through(input.owner, () => local.reject(input)),
    review: (input) => backends.through(input.owner, () => local.review(input)),
  };
}

/** 501 for what only the own database can filter or sort by. */
function filterOf(primary: MemoryBackend, input: ListInput): MemoryFilter {
  const { origin, olderThan, sort } = input;
  const unknown =
    origin !== undefined
      ? "origin"
      : olderThan !== undefined
        ? "olderThan"
        : sort === "lastAccessedAt"
          ? "sort"
          : null;
  if (unknown !== null)
    throw new AppError(
      "not_supported",
      `The memory backend ${primary.displayName} cannot list by ${unknown}.`,
      { param: unknown },
    );
  return {
    apiKeyId: input.owner,
    limit: input.limit,
    offset: input.offset,
    ...(input.type === undefined ? {} : { type: input.type }),
    ...(input.status === undefined ? {} : { status: input.status }),
    ...(input.sessionId === undefined ? {} : { sessionId: input.sessionId }),
    ...(input.q === undefined ? {} : { q: input.q }),
    ...(sort === "updatedAt" ? { orderBy: sort } : {}),
    ...(input.order === undefined ? {} : { orderDir: input.order }),
  };
}
