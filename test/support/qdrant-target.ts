// The Qdrant that tests talk to: the server of QDRANT_URL (with QDRANT_API_KEY) when it is set, else a stand-in on
// loopback. Always through a proxy that can break it. Collections that a test names are removed afterwards.
import { connectQdrant } from "../../src/search/qdrant/client.ts";
import type { Qdrant, QdrantOptions } from "../../src/search/qdrant/client.ts";
import { startFlaky } from "./flaky.ts";
import type { Flaky } from "./flaky.ts";
import { startQdrant } from "./qdrant.ts";

export interface QdrantTarget {
  /** Address to give to the product. */
  url: string;
  apiKey: string | null;
  proxy: Flaky;
  /** A client past the proxy, for looking at what is there. */
  direct: Qdrant;
  /** A collection name that nothing else uses. */
  name(): string;
  connect(options?: QdrantOptions): Promise<Qdrant>;
  stop(): Promise<void>;
}

export async function startTarget(options: { apiKey?: string } = {}): Promise<QdrantTarget> {
  const real = Bun.env["QDRANT_URL"] || null;
  const standIn = real ? null : startQdrant(options);
  const server = real ?? standIn?.url ?? "";
  const apiKey = real ? (Bun.env["QDRANT_API_KEY"] ?? null) : (options.apiKey ?? null);
  const proxy = startFlaky(server);
  const direct = await connectQdrant({ url: server, apiKey });
  const names: string[] = [];
  const clients: Qdrant[] = [direct];
  return {
    url: proxy.url,
    apiKey,
    proxy,
    direct,
    name() {
      const name = `test_${crypto.randomUUID().slice(0, 8)}`;
      names.push(name);
      return name;
    },
    async connect(given = {}) {
      const client = await connectQdrant({ url: proxy.url, apiKey }, given);
      clients.push(client);
      return client;
    },
    async stop() {
      if (real) {
        const { collections } = await direct.call("search", (api, init) => api.getCollections({}, init));
        for (const { name } of collections)
          if (names.some((n) => name === n || name.startsWith(`${n}_`)))
            await direct.call("write", (api, init) => api.deleteCollection({ collection_name: name }, init));
      }
      for (const client of clients) client.close();
      await proxy.stop();
      await standIn?.stop();
    },
  };
}

/** Waits until `check` is true (asked every 5 ms), or fails after `ms`. */
export async function until(check: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await check())) {
    if (performance.now() > end) throw new Error("the condition did not come true");
    await Bun.sleep(5);
  }
}
