// The request bodies of the Qdrant REST API that the product uses, as its OpenAPI document (1.18) has them.
// Strict on purpose: the real server ignores most unknown fields, which hides a misspelt one.
import { z } from "zod";

const pointId = z.union([z.number().int().nonnegative(), z.uuid()]);
/** A name in a payload; anything but letters, digits, `_` and `-` needs quotes. */
const jsonPath = z.string().regex(/^([\p{L}\p{N}_-]+|"[^"\\]*")(\.([\p{L}\p{N}_-]+|"[^"\\]*")|\[\d*\])*$/u);
const scalar = z.union([z.string(), z.number().int(), z.boolean()]);

const match = z.union([
  z.strictObject({ value: scalar }),
  z.strictObject({ any: z.union([z.array(z.string()), z.array(z.number().int())]) }),
  z.strictObject({ except: z.union([z.array(z.string()), z.array(z.number().int())]) }),
]);
const range = z.strictObject({
  lt: z.number().nullish(),
  lte: z.number().nullish(),
  gt: z.number().nullish(),
  gte: z.number().nullish(),
});

export interface Filter {
  must?: Condition | Condition[] | null | undefined;
  should?: Condition | Condition[] | null | undefined;
  must_not?: Condition | Condition[] | null | undefined;
}
export type Condition =
  | { key: string; match?: z.infer<typeof match> | undefined; range?: z.infer<typeof range> | undefined }
  | { is_empty: { key: string } }
  | { is_null: { key: string } }
  | { has_id: (string | number)[] }
  | Filter;

const condition: z.ZodType<Condition> = z.lazy(() =>
  z.union([
    z
      .strictObject({ key: jsonPath, match: match.optional(), range: range.optional() })
      .refine(
        (c) => (c.match === undefined) !== (c.range === undefined),
        "At least one field condition must be specified",
      ),
    z.strictObject({ is_empty: z.strictObject({ key: jsonPath }) }),
    z.strictObject({ is_null: z.strictObject({ key: jsonPath }) }),
    z.strictObject({ has_id: z.array(pointId) }),
    filter,
  ]),
);
const conditions = z.union([condition, z.array(condition)]).nullish();
const filter: z.ZodType<Filter> = z.lazy(() =>
  z.strictObject({ must: conditions, should: conditions, must_not: conditions }),
);

const dense = z.array(z.number()).min(1);
const sparse = z
  .strictObject({
    indices: z.array(z.number().int().nonnegative().max(4_294_967_295)),
    values: z.array(z.number()),
  })
  .refine((v) => new Set(v.indices).size === v.indices.length, "indices: must be unique")
  .refine((v) => v.indices.length === v.values.length, "values: must be the same length as indices");
const vector = z.union([dense, z.record(z.string(), z.union([dense, sparse]))]);
const payload = z.record(z.string(), z.unknown());
const withPayload = z.union([
  z.boolean(),
  z.array(z.string()),
  z.strictObject({ include: z.array(z.string()) }),
  z.strictObject({ exclude: z.array(z.string()) }),
]);
const withVector = z.union([z.boolean(), z.array(z.string())]);

const quantization = z.union([
  z.strictObject({
    scalar: z.strictObject({
      type: z.literal("int8"),
      quantile: z.number().min(0.5).max(1).nullish(),
      always_ram: z.boolean().nullish(),
    }),
  }),
  z.strictObject({ binary: z.strictObject({ always_ram: z.boolean().nullish() }) }),
]);
const hnsw = z.strictObject({
  m: z.number().int().nonnegative().optional(),
  payload_m: z.number().int().nonnegative().optional(),
  ef_construct: z.number().int().min(4).optional(),
});
const vectorParams = z.strictObject({
  size: z.number().int().min(1).max(65_536),
  distance: z.enum(["Cosine", "Euclid", "Dot", "Manhattan"]),
  on_disk: z.boolean().optional(),
});

export const createCollection = z.strictObject({
  vectors: z.union([vectorParams, z.record(z.string(), vectorParams)]),
  sparse_vectors: z
    .record(z.string(), z.strictObject({ modifier: z.enum(["none", "idf"]).optional() }))
    .optional(),
  hnsw_config: hnsw.optional(),
  quantization_config: quantization.nullish(),
  on_disk_payload: z.boolean().optional(),
  shard_number: z.number().int().min(1).optional(),
  replication_factor: z.number().int().min(1).optional(),
  write_consistency_factor: z.number().int().min(1).optional(),
  metadata: payload.optional(),
});
export const updateCollection = z.strictObject({
  quantization_config: z.union([quantization, z.literal("Disabled")]).optional(),
  hnsw_config: hnsw.optional(),
  metadata: payload.optional(),
});
export const changeAliases = z.strictObject({
  actions: z.array(
    z.union([
      z.strictObject({
        create_alias: z.strictObject({ collection_name: z.string(), alias_name: z.string() }),
      }),
      z.strictObject({ delete_alias: z.strictObject({ alias_name: z.string() }) }),
      z.strictObject({
        rename_alias: z.strictObject({ old_alias_name: z.string(), new_alias_name: z.string() }),
      }),
    ]),
  ),
});
const fieldSchema = z.union([
  z.enum(["keyword", "integer", "float", "bool", "datetime", "uuid", "text"]),
  z.strictObject({
    type: z.literal("keyword"),
    is_tenant: z.boolean().optional(),
    on_disk: z.boolean().optional(),
  }),
  z.strictObject({
    type: z.literal("integer"),
    lookup: z.boolean().optional(),
    range: z.boolean().optional(),
    is_principal: z.boolean().optional(),
  }),
]);
export const createIndex = z.strictObject({ field_name: jsonPath, field_schema: fieldSchema });

export const upsert = z.strictObject({
  points: z.array(z.strictObject({ id: pointId, vector, payload: payload.nullish() })).min(1),
});
export const deletePoints = z.union([
  z.strictObject({ points: z.array(pointId).min(1) }),
  z.strictObject({ filter }),
]);
export const retrieve = z.strictObject({
  ids: z.array(pointId),
  with_payload: withPayload.optional(),
  with_vector: withVector.optional(),
});
export const setPayload = z.strictObject({ payload, points: z.array(pointId).min(1) });
export const scroll = z.strictObject({
  offset: pointId.nullish(),
  limit: z.number().int().min(1).optional(),
  filter: filter.nullish(),
  with_payload: withPayload.optional(),
  with_vector: withVector.optional(),
  order_by: z
    .union([
      z.string(),
      z.strictObject({
        key: z.string(),
        direction: z.enum(["asc", "desc"]).optional(),
        start_from: z.union([z.number(), z.string()]).nullish(),
      }),
    ])
    .optional(),
});
export const count = z.strictObject({ filter: filter.nullish(), exact: z.boolean().optional() });
export const facet = z.strictObject({
  key: jsonPath,
  limit: z.number().int().min(1).optional(),
  filter: filter.nullish(),
  exact: z.boolean().optional(),
});

const params = z.strictObject({
  hnsw_ef: z.number().int().nonnegative().optional(),
  exact: z.boolean().optional(),
  quantization: z
    .strictObject({
      ignore: z.boolean().optional(),
      rescore: z.boolean().optional(),
      oversampling: z.number().min(1).optional(),
    })
    .optional(),
});
const nearest = z.union([dense, sparse]);
const fusion = z.union([
  z.strictObject({ fusion: z.enum(["rrf", "dbsf"]) }),
  z.strictObject({ rrf: z.strictObject({ k: z.number().int().min(1).optional() }) }),
]);
const prefetch = z.strictObject({
  query: nearest,
  using: z.string().optional(),
  filter: filter.nullish(),
  params: params.optional(),
  score_threshold: z.number().optional(),
  limit: z.number().int().min(1).optional(),
});
export const query = z.strictObject({
  query: z.union([nearest, z.strictObject({ nearest }), fusion]),
  prefetch: z.union([prefetch, z.array(prefetch)]).optional(),
  using: z.string().optional(),
  filter: filter.nullish(),
  params: params.optional(),
  score_threshold: z.number().optional(),
  limit: z.number().int().min(1).optional(),
  offset: z.number().int().nonnegative().optional(),
  with_payload: withPayload.optional(),
  with_vector: withVector.optional(),
});
export type QueryBody = z.infer<typeof query>;
export type PointId = string | number;
export type VectorBody = z.infer<typeof vector>;
export type CollectionBody = z.infer<typeof createCollection>;
