/** docs/clients.md says nothing that does not work: its programs and commands are run as they stand there. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProxy } from "./support/proxy.ts";
import type { TestProxy } from "./support/proxy.ts";
import { startUpstream } from "./support/upstream.ts";
import type { MockUpstream } from "./support/upstream.ts";

const root = join(import.meta.dir, "..");
const page = readFileSync(join(root, "docs/clients.md"), "utf8");
const blocks = [...page.matchAll(/```(\w+)\n([\s\S]*?)```/g)].map(([, language, text]) => ({
  language: language!,
  text: text!,
}));
const scratch = join(root, `test/.docs-${process.pid}`);
let proxy: TestProxy;
let upstream: MockUpstream;

beforeAll(async () => {
  upstream = await startUpstream({ developer: true, reply: () => "It works." });
  proxy = await startProxy();
  for (const id of ["openai", "anthropic"]) {
    proxy.providers.create({
      id,
      baseUrl: upstream.url,
      wire: ["chat", "responses", "messages"],
      passthroughAuth: id === "openai",
    });
  }
  mkdirSync(scratch);
});
afterAll(async () => {
  rmSync(scratch, { recursive: true, force: true });
  await proxy.stop();
  upstream.close();
});

/** The text with the real address and keys in place of the examples'. */
const real = (text: string) =>
  text
    .replaceAll("http://127.0.0.1:20128", proxy.url)
    .replaceAll("rk-YOUR-KEY", proxy.secret)
    .replaceAll("KEY-ID", proxy.keyId)
    .replaceAll("$RECOLLECT_MANAGEMENT_TOKEN", "test-management-token");

test.each(blocks.filter((block) => block.language === "ts").map((block, at) => [at, block.text] as const))(
  "program %i runs as it stands",
  async (at, text) => {
    const file = join(scratch, `program-${at}.ts`);
    writeFileSync(file, real(text));
    const child = Bun.spawn([process.execPath, file], { cwd: root, stdout: "pipe", stderr: "pipe" });
    const [out, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect(errors).toBe("");
    expect(out.trim()).toBe("It works.");
  },
  30_000,
);

test.each(
  blocks
    .filter((block) => block.language === "sh" && block.text.startsWith("curl"))
    .map((block, at) => [at, block.text] as const),
)("command %i answers 200", async (_at, text) => {
  const child = Bun.spawn(
    ["sh", "-c", real(text).replace("curl ", "curl -s -o /dev/null -w '%{http_code}' ")],
    { stdout: "pipe" },
  );
  expect(await new Response(child.stdout).text()).toBe("200");
});

test("Claude Code's and Codex's settings reach the routes they name", async () => {
  const claude = Object.fromEntries(
    [...page.matchAll(/export (\w+)=(\S+)/g)].map(([, name, value]) => [name, real(value!)]),
  );
  const messages = await fetch(`${claude["ANTHROPIC_BASE_URL"]}/v1/messages?beta=true`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${claude["ANTHROPIC_AUTH_TOKEN"]}`,
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
    },
    body: JSON.stringify({
      model: "anthropic/claude-sonnet-4-5",
      max_tokens: 5,
      messages: [{ role: "user", content: "hi" }],
    }),
  });
  expect(messages.status).toBe(200);
  const codex = Bun.TOML.parse(blocks.find((block) => block.language === "toml")!.text) as {
    model: string;
    model_providers: { recollect: { base_url: string; wire_api: string } };
  };
  const { base_url, wire_api } = codex.model_providers.recollect;
  const responses = await fetch(`${real(base_url)}/${wire_api}`, {
    method: "POST",
    headers: { authorization: `Bearer ${proxy.secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: codex.model, input: "hi", stream: true }),
  });
  expect(await responses.text()).toContain("response.completed");
});

test("every header it names is one that counts", () => {
  const source = readFileSync(join(root, "src/proxy/identity.ts"), "utf8");
  for (const [, name] of page.matchAll(/^\| `([\w-]+)(?::[^`]*)?`(?:, `[\w-]+`)* \|/gm))
    expect(source).toContain(`"${name!.toLowerCase()}"`);
});
