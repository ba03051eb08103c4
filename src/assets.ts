/**
 * The Studio's files: one style sheet, htmx and one small script. They are part of the program, named by
 * the hash of their content so that a browser may keep them for a year, and compressed once, on first use.
 */
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
// @ts-expect-error the package declares no types for this file; the import attribute makes it a string
import htmxSource from "htmx.org/dist/htmx.min.js" with { type: "text" };
import cssSource from "../views/studio.css" with { type: "text" };
// @ts-expect-error a script read as text, not a module
import scriptSource from "../views/studio.js" with { type: "text" };

type AssetName = "studio.css" | "studio.js" | "htmx.js" | "icon.svg";
type Encoding = "br" | "gzip";

/** Addresses of the assets, as pages link them. */
export type AssetUrls = Readonly<Record<AssetName, string>>;

export interface Assets {
  readonly urls: AssetUrls;
  /** The answer to GET `path`, or null where there is no such asset. `accept` is the request's Accept-Encoding. */
  serve(path: string, accept: string | undefined): Promise<Response | null>;
}

/** Comments and indentation of a style sheet that has no strings with line breaks in them. */
function squeezeCss(css: string): string {
  return css
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,]) ?/g, "$1")
    .replace(/;}/g, "}")
    .trim();
}

/** Whole-line comments and indentation; the script has no template literal that spans lines. */
function squeezeScript(script: string): string {
  return script.replace(/^\s*(?:\/\/|\/\*\*).*$/gm, "").replace(/^\s+/gm, "");
}

const TYPES: Readonly<Record<AssetName, string>> = {
  "studio.css": "text/css; charset=utf-8",
  "studio.js": "text/javascript; charset=utf-8",
  "htmx.js": "text/javascript; charset=utf-8",
  "icon.svg": "image/svg+xml",
};

/** The ring and dot of the brand, in both themes. */
const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 22 22"><style>path{stroke:#0f5f96}circle{fill:#0f5f96}@media(prefers-color-scheme:dark){path{stroke:#7fc1f2}circle{fill:#7fc1f2}}</style><path d="M17.4 5.6A8.4 8.4 0 1 0 19.4 11" fill="none" stroke-width="2.25" stroke-linecap="round"/><circle cx="11" cy="11" r="3.1"/></svg>';

/** Off the main thread: streams go on while the first visitor's files are compressed. */
async function compress(
  bytes: Uint8Array<ArrayBuffer>,
  encoding: Encoding,
): Promise<Uint8Array<ArrayBuffer>> {
  if (encoding === "gzip") return new Uint8Array(await promisify(gzip)(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return new Uint8Array(await promisify(brotliCompress)(bytes, { params }));
}

/** Reads and hashes the assets (about a millisecond); each encoding is made when it is first asked for. */
export function createAssets(): Assets {
  const texts: Record<AssetName, string> = {
    "studio.css": squeezeCss(cssSource),
    "studio.js": squeezeScript(scriptSource as string),
    "htmx.js": htmxSource as string,
    "icon.svg": icon,
  };
  const names = Object.keys(texts) as AssetName[];
  const urlOf = (name: AssetName) => {
    const hash = new Bun.CryptoHasher("sha256").update(texts[name]).digest("hex").slice(0, 12);
    return `/assets/${hash}/${name}`;
  };
  const urls = Object.fromEntries(names.map((name) => [name, urlOf(name)])) as Record<AssetName, string>;
  const byPath = new Map(names.map((name) => [urls[name], name]));
  const encoded = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();

  const bytesOf = (name: AssetName, encoding: Encoding | null) => {
    const key = `${name} ${encoding}`;
    let bytes = encoded.get(key);
    if (!bytes) {
      const plain = new TextEncoder().encode(texts[name]);
      bytes = encoding ? compress(plain, encoding) : Promise.resolve(plain);
      encoded.set(key, bytes);
    }
    return bytes;
  };

  return {
    urls,
    async serve(path, accept) {
      const name = byPath.get(path);
      if (!name) return null;
      const encoding = /\bbr\b/.test(accept ?? "") ? "br" : /\bgzip\b/.test(accept ?? "") ? "gzip" : null;
      const headers = new Headers({
        "content-type": TYPES[name],
        "cache-control": "public, max-age=31536000, immutable",
        vary: "Accept-Encoding",
        "x-content-type-options": "nosniff",
      });
      if (encoding) headers.set("content-encoding", encoding);
      return new Response(await bytesOf(name, encoding), { headers });
    },
  };
}
