/** Entities and the relationships between them. */
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { listOf, success } from "../schemas/common.ts";
import {
  entity,
  entityType,
  foundEntity,
  foundOf,
  newEntity,
  newRelationship,
  paging,
  pathId,
  redacted,
  relationship,
  relationshipName,
  searchLimit,
  searchText,
  withRedacted,
} from "../schemas/conversations.ts";
import { operation, Reply, type Operation } from "./operation.ts";

const byId = z.strictObject({ id: pathId });

export function entityOperations({ conversations }: Engine): Operation[] {
  const read = { tag: "Entities", access: "read:memory", owner: "span" } as const;
  const write = { tag: "Entities", access: "write:memory", owner: "span" } as const;
  return [
    operation({
      ...write,
      owner: "one",
      method: "post",
      path: "/entities",
      summary: "Make or update an entity",
      description:
        "A known name (or alias) of the same type answers 200: notes are replaced when given, metadata is merged shallowly.",
      body: newEntity,
      answer: entity.extend(redacted),
      statuses: [200, 201],
      handle: async ({ body, owner }) => {
        const { apiKeyId: _, ...fields } = body;
        const made = await conversations.upsertEntity({ ...fields, owner: owner! });
        return new Reply(made.created ? 201 : 200, withRedacted(made.entity, made.redacted));
      },
    }),
    operation({
      ...read,
      method: "get",
      path: "/entities",
      summary: "List entities",
      description: "Newest first.",
      query: paging,
      answer: listOf(entity),
      handle: ({ query, owner }) => conversations.listEntities({ owner, ...query }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/entities/by-type/{type}",
      summary: "List entities of one type",
      params: z.strictObject({ type: entityType }),
      query: paging,
      answer: listOf(entity),
      handle: ({ params, query, owner }) =>
        conversations.listEntities({ owner, type: params.type, ...query }),
    }),
    operation({
      ...read,
      owner: "one",
      method: "get",
      path: "/entities/search",
      summary: "Search entities",
      query: z.strictObject({ q: searchText, limit: searchLimit }),
      answer: foundOf(foundEntity),
      handle: ({ query, owner }) =>
        conversations.searchEntities({ query: query.q, limit: query.limit, owner: owner! }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/entities/{id}",
      summary: "Get an entity",
      params: byId,
      answer: entity,
      handle: ({ params, owner }) => conversations.getEntity({ owner, id: params.id }),
    }),
    operation({
      ...write,
      method: "delete",
      path: "/entities/{id}",
      summary: "Delete an entity",
      description: "With its relationships.",
      params: byId,
      answer: success,
      handle: ({ params, owner }) => conversations.deleteEntity({ owner, id: params.id }),
    }),
    operation({
      ...read,
      method: "get",
      path: "/entities/{id}/relationships",
      summary: "List an entity's relationships",
      params: byId,
      query: paging.extend({ direction: z.enum(["out", "in", "both"]).default("out") }),
      answer: listOf(relationship),
      handle: ({ params, query, owner }) =>
        conversations.listRelationships({ owner, entityId: params.id, ...query }),
    }),
    operation({
      ...write,
      owner: "one",
      method: "post",
      path: "/relationships",
      summary: "Make or update a relationship",
      description:
        "Both ends must be the owner's. The same ends and label are one: metadata is merged shallowly.",
      body: newRelationship,
      answer: relationship.extend(redacted),
      statuses: [200, 201],
      handle: async ({ body, owner }) => {
        const { apiKeyId: _, ...fields } = body;
        const made = await conversations.upsertRelationship({ ...fields, owner: owner! });
        return new Reply(made.created ? 201 : 200, withRedacted(made.relationship, made.redacted));
      },
    }),
    operation({
      ...write,
      owner: "one",
      method: "delete",
      path: "/relationships",
      summary: "Delete a relationship",
      body: relationshipName,
      answer: success,
      handle: ({ body, owner }) => {
        const { apiKeyId: _, ...fields } = body;
        return conversations.deleteRelationship({ ...fields, owner: owner! });
      },
    }),
  ];
}
