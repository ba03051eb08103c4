/** `bun scripts/wasm.ts`: makes src/search/nearest.wasm from nearest.wat beside it. */
import { join } from "node:path";
import { assemble } from "../test/support/wasm.ts";

const folder = join(import.meta.dir, "../src/search");
await Bun.write(join(folder, "nearest.wasm"), await assemble(join(folder, "nearest.wat")));
