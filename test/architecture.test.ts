import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** Direction of imports: main → server → parts → app → faces → engine → ports. A room may use what its row lists, and itself. */
const mayUse: Record<string, string[]> = {
  text: [],
  extract: ["text"],
  importers: ["extract", "text", "data", "error", "memory"],
  embed: ["text", "native", "native-files", "error"],
  upstream: ["error", "log", "memory", "db", "seal"],
  db: ["text", "error", "memory", "schemas", "seal", "threads"],
  search: ["db", "text", "embed", "extract", "native", "error", "log", "memory"],
  worker: ["memory", "config", "engine", "error", "log", "metrics", "threads"],
};
const faces = ["api", "mcp", "studio", "proxy"];

type Import = { from: string; to: string; type: boolean; lazy: boolean };

const root = join(import.meta.dir, "../src");
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
const imports: Import[] = files.flatMap((file) => {
  const text = readFileSync(join(root, file), "utf8");
  const found = text.matchAll(
    /^(?:import|export)\s+(type\s+)?[^"';]*?from\s+"(\.[^"]+)"|(?:import|require)\("(\.[^"]+)"\)/gm,
  );
  return [...found].map((match) => ({
    from: file,
    to: relative(root, resolve(dirname(join(root, file)), match[2] ?? match[3]!)),
    type: match[1] !== undefined,
    lazy: match[3] !== undefined,
  }));
});
const room = (file: string) => file.split("/")[0]!.replace(/\.tsx?$/, "");
const say = ({ from, to }: Import) => `${from} → ${to}`;

test("there is something to look at", () => {
  expect(files.length).toBeGreaterThan(50);
  expect(imports.length).toBeGreaterThan(100);
});

test("rooms below use only what lies below them", () => {
  const wrong = imports.filter(({ from, to, type }) => {
    const allowed = mayUse[room(from)];
    return allowed && !type && room(to) !== room(from) && !to.startsWith("..") && !allowed.includes(room(to));
  });
  expect(wrong.map(say)).toEqual([]);
});

test("faces never use each other or the database", () => {
  const wrong = imports.filter(({ from, to, type }) => {
    if (!faces.includes(room(from)) || type) return false;
    return room(to) === "db" || (faces.includes(room(to)) && room(to) !== room(from));
  });
  expect(wrong.map(say)).toEqual([]);
});

test("nothing below uses a face, the app or the server", () => {
  const above = new Set([...faces, "app", "parts", "server", "main", "cli"]);
  const wrong = imports.filter(
    ({ from, to }) => !above.has(room(from)) && above.has(room(to)) && room(from) !== "app",
  );
  expect(wrong.map(say)).toEqual([]);
});

test("only main.ts and server.ts touch process", () => {
  const wrong = files.filter((file) => {
    if (file === "main.ts" || file === "server.ts") return false;
    const code = readFileSync(join(root, file), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
    return /\bprocess\.(?:env|exit|argv|on|cwd|stdout|stderr|stdin)\b/.test(code);
  });
  expect(wrong).toEqual([]);
});

test("a start loads no schemas, no language and no face", () => {
  // What `serve` loads in both threads before it answers.
  const loaded = new Set(["main.ts", "cli/serve.ts", "server.ts", "worker/main.ts"]);
  for (const file of loaded)
    for (const { from, to, type, lazy } of imports) if (from === file && !type && !lazy) loaded.add(to);
  expect(loaded.size).toBeGreaterThan(100);
  const wrong = [...loaded].filter((file) => {
    if (/^(?:schemas|api|mcp|studio|importers|extract\/lang\/..\.ts)/.test(file)) return true;
    const code = readFileSync(join(root, file), "utf8");
    return /^import (?!type)[^"';]*? from "(?:zod|@huggingface|@orama\/stemmers|@qdrant)/m.test(code);
  });
  expect(wrong).toEqual([]);
});
