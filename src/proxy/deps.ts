/** What the routes of `/v1` are given. */
import type { ApiKey } from "../db/keys.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { Engine } from "../engine.ts";
import type { MemorySettings } from "../memory/settings.ts";
import type { Metrics } from "../metrics.ts";
import type { Models } from "../upstream/models.ts";
import type { Providers } from "../upstream/providers.ts";
import type { Transport } from "../upstream/transport.ts";

export interface ProxyDeps {
  config: Pick<Config, "REQUIRE_API_KEY">;
  log: Log;
  metrics: Metrics;
  providers: Providers;
  models: Models;
  transport: Transport;
  /** The memory settings in force now. */
  settings: () => MemorySettings;
  engine: { exchange: Pick<Engine["exchange"], "prepare" | "record" | "addUsage"> };
  /** Throws 429 when a key has asked too often. */
  admitKey: (key: ApiKey) => void;
  /** Tokens a key has used since a time (milliseconds). */
  tokensSince: (keyId: string, since: number) => number;
  /** Local embedding models (`local/static`, `local/transformers`); absent where the engine has none. */
  embedLocal?: (input: {
    source: "static" | "transformers";
    texts: string[];
  }) => Promise<{ model: string; vectors: number[][] }>;
  /** Local models that could answer, for `/v1/models`. */
  localModels?: () => Promise<{ id: string; created: number }[]>;
  now?: () => number;
}
