/**
 * Collections and their versions. The configured name is an alias from the start, the collection behind it is
 * `<name>__<n>` (Qdrant refuses an alias with the name of a collection). Another size or model is built beside the old
 * one, and the alias is switched in one step when it is complete. A collection that another program made under the very
 * name is used when it fits, and never written to when it does not.
 */
import type { CollectionInfo, Qdrant } from "./client.ts";
import { QdrantError } from "./client.ts";

export type Quantization = "none" | "int8" | "binary";

export type Shape = {
  /** Size of each dense vector by its name; the unnamed one is "". */
  vectors: Record<string, number>;
  /** Name of the sparse vector whose weights the server multiplies with the inverse document frequency. */
  sparse?: string;
  /** Payload indexes by field. `tenant` keeps an owner's points together on disk. */
  indexes: Record<string, "tenant" | "keyword" | "integer" | "bool">;
};

export type CollectionOptions = {
  name: string;
  shape: Shape;
  signature: string;
  quantization: Quantization;
  efConstruct: number | null;
  /** What this box wrote last: the signature of collections that cannot say it themselves. */
  remembered?: { physical: string; signature: string } | null;
};

export type OpenedCollection = {
  /** Where points are written. */
  physical: string;
  /** Complete and of this signature: null while `physical` is still being filled beside it. */
  old: string | null;
  /** The alias exists or will, so that `switchAlias` may be called. False beside a foreign collection. */
  aliased: boolean;
  /** This call made the collection, so nothing is in it. */
  created: boolean;
  /** One sentence for the status page, or null. */
  note: string | null;
};

const quantizations = {
  none: "Disabled",
  int8: { scalar: { type: "int8", quantile: 0.99, always_ram: true } },
  binary: { binary: { always_ram: true } },
} as const;

/** Finds or makes the collection that vectors of this signature go to. */
export async function openCollection(q: Qdrant, options: CollectionOptions): Promise<OpenedCollection> {
  const { name, shape, signature } = options;
  const current = (await aliasesOf(q)).get(name) ?? null;
  if (current !== null) {
    const info = await infoOf(q, current);
    if (info && fits(info, shape) && signatureOf(info, current, options) === signature) {
      await settle(q, current, info, options);
      return { physical: current, old: null, aliased: true, created: false, note: null };
    }
    const next = await versioned(q, options, current);
    return {
      physical: next.physical,
      old: info ? current : null,
      aliased: true,
      created: next.created,
      note: null,
    };
  }
  const foreign = await infoOf(q, name);
  if (foreign === null) {
    const { physical, created } = await versioned(q, options, null);
    await switchAlias(q, name, null, physical);
    return { physical, old: null, aliased: true, created, note: null };
  }
  if (fits(foreign, shape) && (signatureOf(foreign, name, options) ?? signature) === signature) {
    await settle(q, name, foreign, options);
    const note = `The collection ${name} was made by another program; its vectors fit, so it is used as it is.`;
    return { physical: name, old: null, aliased: false, created: false, note };
  }
  const { physical, created } = await versioned(q, options, null);
  const note = `The collection ${name} of another program holds other vectors and is left alone; ${physical} is used.`;
  return { physical, old: null, aliased: false, created, note };
}

/** Points `name` at `to` in one step, then removes the collection it pointed at, if there was one. */
export async function switchAlias(q: Qdrant, name: string, from: string | null, to: string): Promise<void> {
  const create = { create_alias: { alias_name: name, collection_name: to } };
  const actions = from === null ? [create] : [{ delete_alias: { alias_name: name } }, create];
  await q.call("write", (api, init) => api.updateAliases({ actions }, init));
  if (from !== null && from !== to && from.startsWith(`${name}__`))
    await q.call("write", (api, init) => api.deleteCollection({ collection_name: from }, init));
}

export async function aliasesOf(q: Qdrant): Promise<Map<string, string>> {
  const { aliases } = await q.call("search", (api, init) => api.getCollectionsAliases({}, init));
  return new Map(aliases.map((a) => [a.alias_name, a.collection_name]));
}

/** What the server says about a collection, or null when there is none. */
export async function infoOf(q: Qdrant, collection: string): Promise<CollectionInfo | null> {
  try {
    return await q.call("search", (api, init) => api.getCollection({ collection_name: collection }, init));
  } catch (thrown) {
    if (thrown instanceof QdrantError && thrown.fault === "not_found") return null;
    throw thrown;
  }
}

/** Sizes of the dense vectors by name, and their distance. */
function vectorsOf(info: CollectionInfo): Map<string, { size: number; distance: string }> {
  const vectors = (info.config.params.vectors ?? {}) as Record<string, unknown>;
  if (typeof vectors["size"] === "number")
    return new Map([["", vectors as unknown as { size: number; distance: string }]]);
  return new Map(Object.entries(vectors as Record<string, { size: number; distance: string }>));
}

export function dimensionOf(info: CollectionInfo): number | null {
  return [...vectorsOf(info).values()][0]?.size ?? null;
}

function fits(info: CollectionInfo, shape: Shape): boolean {
  const found = vectorsOf(info);
  const wanted = Object.entries(shape.vectors);
  const sparse = (info.config.params.sparse_vectors ?? {}) as Record<string, { modifier?: string | null }>;
  return (
    wanted.every(
      ([name, size]) => found.get(name)?.size === size && found.get(name)?.distance === "Cosine",
    ) &&
    (shape.sparse === undefined || sparse[shape.sparse]?.modifier === "idf")
  );
}

/** The signature that a collection was made for; null when nobody knows. */
function signatureOf(info: CollectionInfo, physical: string, options: CollectionOptions): string | null {
  const { recollect } = (info.config.metadata ?? {}) as { recollect?: { signature?: unknown } };
  if (typeof recollect?.signature === "string") return recollect.signature;
  if (options.remembered?.physical === physical) return options.remembered.signature;
  return physical === options.name ? null : options.signature;
}

/** The collection `<name>__<n>` for this signature: one that an interrupted build began, else a new one. */
async function versioned(
  q: Qdrant,
  options: CollectionOptions,
  current: string | null,
): Promise<{ physical: string; created: boolean }> {
  const { name, shape, signature } = options;
  const { collections } = await q.call("search", (api, init) => api.getCollections({}, init));
  const prefix = `${name}__`;
  let highest = 0;
  for (const { name: known } of collections) {
    const n = known.startsWith(prefix) ? Number(known.slice(prefix.length)) : Number.NaN;
    if (!Number.isInteger(n)) continue;
    highest = Math.max(highest, n);
    if (known === current) continue;
    const info = await infoOf(q, known);
    const { recollect } = (info?.config.metadata ?? {}) as { recollect?: { signature?: unknown } };
    const begun =
      recollect?.signature === signature ||
      (options.remembered?.physical === known && options.remembered.signature === signature);
    if (info && begun && fits(info, shape)) {
      await settle(q, known, info, options);
      return { physical: known, created: false };
    }
  }
  const physical = `${prefix}${highest + 1}`;
  try {
    await createCollection(q, physical, options);
    return { physical, created: true };
  } catch (thrown) {
    if (!(thrown instanceof QdrantError && thrown.fault === "conflict")) throw thrown;
    // Another appliance made it in the same moment: looked at again, it is ours too where it fits.
    await shardsUp(q, physical);
    return versioned(q, options, current);
  }
}

/** A cluster answers 500 about a collection that was made just now, until its shards are up. */
async function shardsUp(q: Qdrant, physical: string): Promise<void> {
  // Fewer tries than open the breaker.
  for (const pause of [100, 300, 900]) {
    try {
      await infoOf(q, physical);
      return;
    } catch (thrown) {
      if (!(thrown instanceof QdrantError && thrown.fault === "server")) throw thrown;
      await Bun.sleep(pause);
    }
  }
}

async function createCollection(q: Qdrant, physical: string, options: CollectionOptions): Promise<void> {
  const { shape, quantization, efConstruct, signature } = options;
  const param = (size: number): { size: number; distance: "Cosine" } => ({ size, distance: "Cosine" });
  const unnamed = shape.vectors[""];
  await q.call("write", (api, init) =>
    api.createCollection(
      {
        collection_name: physical,
        vectors:
          unnamed !== undefined
            ? param(unnamed)
            : Object.fromEntries(Object.entries(shape.vectors).map(([name, size]) => [name, param(size)])),
        ...(shape.sparse === undefined ? {} : { sparse_vectors: { [shape.sparse]: { modifier: "idf" } } }),
        ...(efConstruct === null ? {} : { hnsw_config: { ef_construct: efConstruct } }),
        ...(quantization === "none" ? {} : { quantization_config: quantizations[quantization] }),
        metadata: { recollect: { signature } },
      },
      init,
    ),
  );
  await createIndexes(q, physical, shape, new Set());
}

async function createIndexes(q: Qdrant, physical: string, shape: Shape, known: Set<string>): Promise<void> {
  for (const [field, kind] of Object.entries(shape.indexes)) {
    if (known.has(field)) continue;
    await q.call("write", (api, init) =>
      api.createFieldIndex(
        {
          collection_name: physical,
          wait: true,
          field_name: field,
          field_schema: kind === "tenant" ? { type: "keyword", is_tenant: true } : kind,
        },
        init,
      ),
    );
  }
}

/** Brings an existing collection to the indexes and the quantisation that are wanted now. */
async function settle(
  q: Qdrant,
  physical: string,
  info: CollectionInfo,
  options: CollectionOptions,
): Promise<void> {
  await createIndexes(q, physical, options.shape, new Set(Object.keys(info.payload_schema)));
  if (quantizationOf(info) === options.quantization) return;
  await q.call("write", (api, init) =>
    api.updateCollection(
      { collection_name: physical, quantization_config: quantizations[options.quantization] },
      init,
    ),
  );
}

function quantizationOf(info: CollectionInfo): Quantization | "other" {
  const config = info.config.quantization_config as { scalar?: unknown; binary?: unknown } | null | undefined;
  if (config == null) return "none";
  return config.scalar ? "int8" : config.binary ? "binary" : "other";
}
