import { expect, test } from "bun:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { createAssets } from "../src/assets.ts";

const assets = createAssets();
const get = (path: string, accept?: string) => assets.serve(path, accept);
const bytes = async (response: Response | null | Promise<Response | null>) =>
  new Uint8Array(await (await response)!.arrayBuffer());

test("each asset is served under the hash of its content, to be kept for a year", async () => {
  for (const url of Object.values(assets.urls)) {
    expect(url).toMatch(/^\/assets\/[0-9a-f]{12}\/(studio\.css|studio\.js|htmx\.js|icon\.svg)$/);
    const response = await get(url);
    expect(response?.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(response?.headers.get("vary")).toBe("Accept-Encoding");
  }
  expect(await get("/assets/000000000000/studio.css")).toBeNull();
});

test("br is preferred, gzip comes next, and both hold the same bytes as the plain file", async () => {
  for (const url of Object.values(assets.urls)) {
    const plain = await bytes(get(url));
    const br = await get(url, "gzip, deflate, br");
    const gzip = await get(url, "gzip");
    expect(br?.headers.get("content-encoding")).toBe("br");
    expect(gzip?.headers.get("content-encoding")).toBe("gzip");
    expect(new Uint8Array(brotliDecompressSync(await bytes(br)))).toEqual(plain);
    expect(new Uint8Array(gunzipSync(await bytes(gzip)))).toEqual(plain);
  }
});

test("the style sheet is at most 16 kB and the scripts at most 30 kB, in either encoding", async () => {
  for (const encoding of ["br", "gzip"]) {
    const size = async (name: keyof typeof assets.urls) =>
      (await bytes(get(assets.urls[name], encoding))).length;
    expect(await size("studio.css")).toBeLessThanOrEqual(16_000);
    expect((await size("studio.js")) + (await size("htmx.js"))).toBeLessThanOrEqual(30_000);
  }
});

test("squeezing keeps every rule of the style sheet", async () => {
  const css = new TextDecoder().decode(await bytes(get(assets.urls["studio.css"])));
  expect(css.match(/\{/g)?.length).toBe(css.match(/\}/g)?.length);
  expect(css).toContain('content: counter(picked) " "');
  expect(css).not.toContain("/*");
});

test("nothing in the assets points to another machine", async () => {
  for (const url of [assets.urls["studio.css"], assets.urls["studio.js"]]) {
    expect(new TextDecoder().decode(await bytes(get(url)))).not.toMatch(/https?:\/\/|url\(["']?\/\//);
  }
});
