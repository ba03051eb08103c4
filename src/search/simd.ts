/**
 * The arithmetic of vector search in WebAssembly, with 128-bit SIMD where the processor has it. Each set of vectors has a
 * memory of its own that both sides see.
 */
import { readFileSync } from "node:fs";
import file from "./nearest.wasm" with { type: "file" };

/** Rows are padded with zeros to a multiple of so many numbers. */
export const PAD = 16;
/** Rows of a block of bits. */
export const BLOCK = 16;
const PAGE = 65_536;

/** Where rows are and where results go, as byte addresses in `memory`. */
export interface Simd {
  readonly memory: ArrayBuffer;
  /** `out[row] = Σ table[half byte]` in 16 bits, for `blocks` of {@link BLOCK} rows. */
  sums(bits: number, blocks: number, bytes: number, tables: number, out: number): void;
  /** `out[i] = rows[i] · query`, 32-bit floats; `stride` is a row's bytes. */
  dots(rows: number, n: number, vectors: number, stride: number, query: number, out: number): void;
  /** The same of signed bytes against 16-bit integers, in 32-bit integers. */
  codeDots(rows: number, n: number, codes: number, stride: number, query: number, out: number): void;
}

/** A memory of at least so many bytes, all zero, with the functions over it; null where there is no SIMD. */
export type OpenSimd = (bytes: number) => Simd | null;

/** Compiles once, at the first call. */
export function createSimd(): OpenSimd {
  let compiled: WebAssembly.Module | null | undefined;
  return (bytes) => {
    if (compiled === undefined) compiled = compile();
    if (compiled === null) return null;
    try {
      const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
      const { exports } = new WebAssembly.Instance(compiled, { js: { memory } });
      const { sums, dots, codeDots } = exports as unknown as Omit<Simd, "memory">;
      return { memory: memory.buffer, sums, dots, codeDots };
    } catch {
      // No room for such a memory: plain arrays then.
      return null;
    }
  };
}

function compile(): WebAssembly.Module | null {
  const code = readFileSync(file);
  return WebAssembly.validate(code) ? new WebAssembly.Module(code) : null;
}
