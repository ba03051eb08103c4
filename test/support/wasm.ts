/** WebAssembly text to its binary form. */
import wabt from "wabt";

export async function assemble(file: string): Promise<Uint8Array> {
  const parsed = (await wabt()).parseWat(file, await Bun.file(file).text(), { simd: true });
  try {
    parsed.validate();
    return parsed.toBinary({}).buffer;
  } finally {
    parsed.destroy();
  }
}
