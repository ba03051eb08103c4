import { expect, test } from "bun:test";
import { resolveEmbedding, withoutUserInfo, type EmbeddingSettings } from "../../src/embed/resolve.ts";

const off: EmbeddingSettings = {
  embeddingSource: "auto",
  embeddingProviderModel: null,
  customBaseUrl: null,
  customModelId: null,
  staticEnabled: false,
  transformersEnabled: false,
};
const providers: Record<string, { hasKey: boolean; local: boolean }> = {
  openai: { hasKey: true, local: false },
  keyless: { hasKey: false, local: false },
  ollama: { hasKey: false, local: true },
};
const custom = { customBaseUrl: "http://user:secret@box:9/v1/?key=secret", customModelId: "bge-m3" };

const cases: [what: string, settings: Partial<EmbeddingSettings>, source: string | null, model: string | null, says: string][] = [
  ["nothing set", {}, null, null, "No embedding endpoint is set and no local model is enabled. Search is by words alone."],
  ["a provider with a key that nobody chose", {}, null, null, "by words alone"],
  ["static enabled", { staticEnabled: true }, "static", "S", "staticEnabled is on"],
  ["transformers enabled", { transformersEnabled: true }, "transformers", "T", "transformersEnabled is on"],
  ["both enabled", { staticEnabled: true, transformersEnabled: true }, "static", "S", "staticEnabled"],
  ["provider model", { embeddingProviderModel: "openai/e-3", staticEnabled: true }, "remote", "openai/e-3", "embeddingProviderModel is openai/e-3"],
  ["provider on loopback without key", { embeddingProviderModel: "ollama/nomic/embed" }, "remote", "ollama/nomic/embed", "ollama"],
  ["provider elsewhere without key", { embeddingProviderModel: "keyless/e", transformersEnabled: true }, "transformers", "T", "Provider keyless, which embeddingProviderModel names, has no key. The setting transformersEnabled is on."],
  ["no such provider", { embeddingProviderModel: "gone/e" }, null, null, "There is no provider gone"],
  ["custom endpoint first", { ...custom, embeddingProviderModel: "openai/e-3" }, "remote", "bge-m3@http://box:9/v1", "custom embedding endpoint"],
  ["explicit static is its own opt-in", { embeddingSource: "static" }, "static", "S", "embeddingSource is static"],
  ["explicit transformers", { embeddingSource: "transformers", staticEnabled: true }, "transformers", "T", "embeddingSource is transformers"],
  ["explicit remote without any", { embeddingSource: "remote", staticEnabled: true }, null, null, "No embedding endpoint and no embeddingProviderModel is set."],
]; // prettier-ignore

const deps = { staticModel: "S", transformersModel: "T", provider: (id: string) => providers[id] ?? null };

for (const [what, settings, source, model, says] of cases) {
  test(`resolves: ${what}`, () => {
    const answer = resolveEmbedding({ ...off, ...settings }, deps);
    expect(answer).toMatchObject({ source, model } as object);
    expect(answer.reason).toContain(says);
    expect(answer.reason + answer.model).not.toContain("secret");
  });
}

test("auto falls through a source that keeps failing, and says so; an explicit one stays", () => {
  const failing = (source: string) => (source === "static" ? "model.safetensors is not there." : null);
  const settings = { ...off, staticEnabled: true, transformersEnabled: true };
  const answer = resolveEmbedding(settings, { ...deps, failing });
  expect(answer.source).toBe("transformers");
  expect(answer.reason).toBe(
    "static keeps failing: model.safetensors is not there. The setting transformersEnabled is on.",
  );
  expect(resolveEmbedding({ ...settings, embeddingSource: "static" }, { ...deps, failing }).source).toBe(
    "static",
  );
});

test("a URL is shown without user info and query", () => {
  expect(withoutUserInfo("https://u:p@host:1/v1/?key=k#f")).toBe("https://host:1/v1");
  expect(withoutUserInfo("nonsense")).toBe("");
});
