import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { variables } from "../src/config.ts";
import { defaultSettings } from "../src/memory/settings.ts";

const page = readFileSync(join(import.meta.dir, "../docs/configuration.md"), "utf8");
const row = (name: string) =>
  page.split("\n").find((line) => line.startsWith("|") && line.includes(`\`${name}\``));

test.each(Object.entries(variables))("the page lists %s with its default", (name, variable) => {
  const line = row(name);
  expect(line).toBeDefined();
  const { default: value } = variable;
  // The address of the model hub is said in words, and lists and secrets have no default.
  if (
    typeof value === "number" ||
    (typeof value === "string" && !value.startsWith("https:")) ||
    typeof value === "boolean"
  ) {
    expect(line).toContain(`\`${value}\``);
  }
});

test.each(Object.entries(defaultSettings))(
  "the page lists the setting %s with its default",
  (name, value) => {
    const line = row(name);
    expect(line).toBeDefined();
    expect(line).toContain(`\`${typeof value === "string" ? value : JSON.stringify(value)}\``);
  },
);

test("the page lists nothing that does not exist", () => {
  const known = new Set([...Object.keys(variables), ...Object.keys(defaultSettings), "DATA_DIR"]);
  const listed = page
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .flatMap((line) => [...line.split("|")[1]!.matchAll(/`([^`]+)`/g)].map((match) => match[1]!));
  expect(listed.filter((name) => !known.has(name))).toEqual([]);
});
