/** docs/api.md and docs/mcp.md say what the code does. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { objectSchema } from "../src/schemas/json-schema.ts";
import { errorTable } from "../src/error.ts";
import { tools } from "../src/mcp/tools.ts";
import { startApi, type ApiServer } from "./support/api-server.ts";
import { routes } from "./support/openapi.ts";

const page = (name: string) => readFileSync(join(import.meta.dir, "../docs", name), "utf8");
/** Rows of the tables of a page, their cells without white space around them. */
const rows = (name: string) =>
  page(name)
    .split("\n")
    .filter((line) => line.startsWith("|") && !line.startsWith("|---"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
const named = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]!);

describe("docs/api.md", () => {
  let api: ApiServer;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.stop());

  test("lists every route with who may call it, and none that is not there", async () => {
    const document = await api.document();
    const all = [...routes(document), ...routes(document, "proxy"), ...routes(document, "mcp")];
    const who = (rule: string) =>
      rule === "public" ? "anybody" : rule === "local" ? "this machine, management" : rule;
    const listed = rows("api.md").filter(([first = ""]) => /^(GET|POST|PUT|PATCH|DELETE) `/.test(first));
    expect(
      listed.map(([route, access, summary]) => [
        route!.replaceAll("`", ""),
        access!.replaceAll("`", ""),
        summary,
      ]),
    ).toEqual(groupedByTag(all).map(({ name, item }) => [name, who(item["x-access"]), item.summary]));
  });

  test("lists every error code with its status and type", () => {
    const codes = rows("api.md").filter(([first = ""]) => named(first)[0]! in errorTable);
    expect(codes.map(([code, status, type]) => [named(code!)[0], Number(status), named(type!)[0]])).toEqual(
      Object.entries(errorTable).map(([code, [status, type]]) => [code, status, type]),
    );
    for (const [, , , meaning] of codes) expect(meaning!.length).toBeGreaterThan(5);
  });
});

describe("docs/mcp.md", () => {
  test("lists every tool with its scope, input and result", () => {
    const listed = rows("mcp.md").filter(([first = ""]) => first.startsWith("`omniroute_"));
    expect(listed.map((cells) => cells.map(named))).toEqual(
      tools.map(({ name, scope, input, output }) => [
        [name],
        [scope],
        Object.keys(objectSchema(input).properties!),
        Object.keys(objectSchema(output, "output").properties!),
      ]),
    );
  });

  test("shows configurations that are valid JSON", () => {
    const blocks = [...page("mcp.md").matchAll(/```json\n([\s\S]*?)```/g)].map((match) => match[1]!);
    expect(blocks).toHaveLength(3);
    for (const block of blocks) expect(() => void JSON.parse(block)).not.toThrow();
  });
});

function groupedByTag<R extends { item: { tags: string[] } }>(list: R[]): R[] {
  return [...Map.groupBy(list, ({ item }) => item.tags[0]).values()].flat();
}
