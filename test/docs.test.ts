import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { variables } from "../src/config.ts";
import { verbs } from "../src/cli/verbs.ts";
import { defaultSettings } from "../src/memory/settings.ts";

const root = join(import.meta.dir, "..");
const pages = ["README.md", ...readdirSync(join(root, "docs")).map((file) => `docs/${file}`)].filter((file) =>
  file.endsWith(".md"),
);
const text = (page: string) => readFileSync(join(root, page), "utf8");

test.each(pages)("%s links only to what is there", (page) => {
  const links = [...text(page).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)].map((match) => match[1]!);
  expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([]);
});

test.each(pages)("%s names only verbs, variables and commands that exist", (page) => {
  const content = text(page);
  const called = [...content.matchAll(/`recollect ([a-z-]+)/g)].map((match) => match[1]!);
  expect(called.filter((verb) => !(verb in verbs))).toEqual([]);
  const scripts = (JSON.parse(text("package.json")) as { scripts: Record<string, string> }).scripts;
  const run = [...content.matchAll(/bun(?:@[\d.]+)? run ([a-z:-]+)/g)].map((match) => match[1]!);
  expect(run.filter((script) => !(script in scripts))).toEqual([]);
  const named = [...content.matchAll(/`((?:MEMORY|QDRANT)_[A-Z_]+[A-Z])(?:=[^`]*)?`/g)].map(
    (match) => match[1]!,
  );
  expect(named.filter((name) => !(name in variables))).toEqual([]);
});

test("tuning speaks of settings that exist", () => {
  const known = new Set([
    ...Object.keys(defaultSettings),
    "memory",
    "userHeader",
    "userField",
    "systemRole",
    "k",
    "none",
    "static",
    "transformers",
    "remote",
  ]);
  const first = text("docs/tuning.md")
    .split("\n")
    .filter((line) => line.startsWith("| `") && !line.startsWith("| `x-") && !line.startsWith("| `MEMORY"))
    .map((line) => /^\| `([A-Za-z]+)/.exec(line)![1]!);
  expect(first.filter((name) => !known.has(name))).toEqual([]);
});

test("the front page's commands are those of package.json", () => {
  expect(text("README.md")).toContain("npx --yes bun@1.4.5 run demo");
  expect(text("README.md")).toContain("npx --yes bun@1.4.5 run check");
  expect(readFileSync(join(root, ".ci/run"), "utf8")).toContain("npx --yes bun@1.4.5 run check");
});
