/** Changes of the Qdrant settings. */
import type { Database } from "bun:sqlite";
import { transact } from "../../db/open.ts";
import { writeSetting } from "../../db/settings.ts";
import { writeMemorySettings } from "../../db/settings-write.ts";
import { invalid } from "../../error.ts";
import type { QdrantSettingsPatch } from "../../schemas/qdrant.ts";
import { maskSecret } from "../../seal.ts";
import type { Seal } from "../../seal.ts";
import { GROUP, readQdrant } from "./settings.ts";
import type { FirstValues, QdrantConnection } from "./settings.ts";

/** Stores any subset; 400 names the field. `enabled` moves the memory setting `vectorStore` with it. */
export function writeQdrant(
  db: Database,
  first: FirstValues,
  seal: Seal,
  patch: QdrantSettingsPatch,
): QdrantConnection {
  return transact(db, () => {
    const { enabled, apiKey, ...plain } = patch;
    const before = readQdrant(db, first, seal);
    for (const [name, given] of Object.entries(plain))
      if (given !== undefined) writeSetting(db, `${GROUP}:${name}`, given);
    // What a form was shown comes back unchanged; it is not a new key.
    if (apiKey !== undefined && (before.apiKey === null || apiKey !== maskSecret(before.apiKey)))
      writeSetting(
        db,
        `${GROUP}:apiKey`,
        apiKey === "" ? "" : Buffer.from(seal.seal(apiKey)).toString("base64"),
      );
    const after = readQdrant(db, first, seal);
    const on = enabled ?? before.enabled;
    if (on && after.url === null) throw invalid("host", "is needed while Qdrant is enabled");
    if (enabled !== undefined && enabled !== before.enabled)
      writeMemorySettings(db, { vectorStore: enabled ? "qdrant" : "auto" });
    return readQdrant(db, first, seal);
  });
}
