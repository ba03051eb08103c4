/** Real embedding weights for tests, in hub layout. */
import { existsSync } from "node:fs";
import { join } from "node:path";

export const STATIC_REPO = "recollect/static-minilm-256";
export const TRANSFORMERS_REPO = "Xenova/all-MiniLM-L6-v2";

/** Folder with the weights, or null (with a printed reason) when this machine has none; CI must have them. */
export function testModels(): string | null {
  const folder = process.env["RECOLLECT_TEST_MODELS"] ?? join(import.meta.dir, "../../../shared/models");
  if (existsSync(join(folder, STATIC_REPO))) return folder;
  const reason = `no embedding weights in ${folder}; set RECOLLECT_TEST_MODELS`;
  if (process.env["CI"] === "true") throw new Error(reason);
  process.stderr.write(`skipped: ${reason}\n`);
  return null;
}
