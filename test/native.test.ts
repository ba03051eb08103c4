import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { NativeBundle } from "../src/native-files.ts";
import { loadOnnx, sqliteVecPath } from "../src/native.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "native-"));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

/** sqlite-vec of this machine, packed as build.ts packs it. */
function packed(bytes?: Uint8Array): NativeBundle {
  const path = sqliteVecPath(dir, null);
  if (typeof path !== "string") throw new Error(path.reason);
  const content = bytes ?? readFileSync(path);
  const source = join(dir, "packed.zst");
  writeFileSync(source, Bun.zstdCompressSync(content));
  const sha256 = createHash("sha256").update(content).digest("hex");
  return {
    target: "here",
    files: [{ library: "sqlite-vec", name: path.split("/").at(-1)!, source, sha256 }],
  };
}

function load(path: ReturnType<typeof sqliteVecPath>): unknown {
  if (typeof path !== "string") throw new Error(path.reason);
  const db = new Database(":memory:");
  db.loadExtension(path, "sqlite3_vec_init");
  return db.query("SELECT vec_version() AS version").get();
}

test("from source, sqlite-vec comes from node_modules", () => {
  expect(load(sqliteVecPath(dir))).toEqual({ version: "v0.1.9" });
  expect(existsSync(join(dir, "native"))).toBe(false);
});

test("from an executable it is written once, below a folder named by its hash", () => {
  const bundle = packed();
  const path = sqliteVecPath(dir, bundle);
  expect(load(path)).toEqual({ version: "v0.1.9" });
  const first = statSync(path as string);
  expect(sqliteVecPath(dir, bundle)).toEqual(path);
  expect(statSync(path as string).ino).toBe(first.ino);
  expect(readdirSync(dirname(path as string))).toHaveLength(1);
});

test("a damaged copy is replaced before it is loaded", () => {
  const bundle = packed();
  const path = sqliteVecPath(dir, bundle) as string;
  const good = readFileSync(path);
  for (const bad of [good.subarray(0, 1000), Buffer.concat([good, Buffer.from("x")]), Buffer.alloc(0)]) {
    writeFileSync(path, bad);
    expect(load(sqliteVecPath(dir, bundle))).toEqual({ version: "v0.1.9" });
    expect(readFileSync(path).equals(good)).toBe(true);
  }
});

test("a folder that cannot be written, a damaged executable and a platform without a build are reasons", () => {
  const bundle = packed();
  writeFileSync(join(dir, "native"), "a file where the folder should be");
  expect(sqliteVecPath(dir, bundle)).toEqual({ reason: expect.stringContaining("could not be written to") });
  rmSync(join(dir, "native"));

  writeFileSync(bundle.files[0]!.source, Bun.zstdCompressSync(Buffer.from("something else")));
  expect(sqliteVecPath(dir, bundle)).toEqual({
    reason: expect.stringContaining("this executable is damaged"),
  });

  const musl: NativeBundle = { target: "linux-x64-musl", files: [] };
  expect(sqliteVecPath(dir, musl)).toEqual({ reason: "sqlite-vec has no build for linux-x64-musl." });
  expect(loadOnnx(dir, musl)).toEqual({ reason: "onnxruntime has no build for linux-x64-musl." });
});

test("ONNX Runtime is found from source", () => {
  expect(loadOnnx(dir)).toBeNull();
});
