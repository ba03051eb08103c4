import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { startAppliance, until, type Appliance } from "./support/appliance.ts";

setDefaultTimeout(60_000);

let appliance: Appliance;
let quiet: string;

type Body = {
  id: string;
  data: { content: string; name: string; label: string; toId: string; id: string }[];
  secret: string;
  jobs: { queued: number; running: number };
};

beforeAll(async () => {
  appliance = await startAppliance({ memory: true });
  const made = await appliance.call("POST", "/api/keys", { name: "quiet", memory: "off" });
  quiet = (made.body as Body).secret;
});
afterAll(() => appliance.stop());

const call = async (method: string, path: string, body?: unknown, key = appliance.key) =>
  (await appliance.call(method, path, body, key)).body as Body;

/** Stores one exchange in a session of its own name. */
async function say(userMessage: string, query = "", key = appliance.key): Promise<void> {
  await call("POST", "/sessions", { externalId: "talk" }, key);
  await call("POST", `/episodes${query}`, { externalId: "talk", userMessage, aiResponse: "Noted." }, key);
}

async function bulk(userMessage: string, query = ""): Promise<void> {
  const response = await fetch(`${appliance.url}/episodes/bulk${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${appliance.key}`, "content-type": "application/x-ndjson" },
    body: JSON.stringify({ externalId: "old", userMessage }),
  });
  expect(response.status).toBe(200);
}

/** What each of the keys has learned once nothing is left to do. */
async function learned(): Promise<string[]> {
  await until("all jobs done", async () => {
    const { jobs } = await call("GET", "/api/memory/engine-status", undefined, appliance.token);
    return jobs.queued + jobs.running === 0;
  });
  const lists = await Promise.all(
    [appliance.key, quiet].map((key) => call("GET", "/api/memory", undefined, key)),
  );
  return lists.flatMap((list) => list.data.map((row) => row.content)).toSorted();
}

test("an exchange teaches like a chat unless told not to; an import teaches only when told to", async () => {
  await say("I prefer walnut bread.");
  await say("I prefer poppy bread.", "?extract=false");
  await say("I prefer barley bread.", "", quiet);
  await bulk("I prefer spelt bread.");
  await bulk("I prefer maize bread.", "?extract=true");
  expect(await learned()).toEqual(["Prefers maize bread", "Prefers walnut bread"]);

  await appliance.call("PUT", "/api/settings/memory", { enabled: false });
  await say("I prefer oat bread.");
  await bulk("I prefer potato bread.", "?extract=true");
  expect(await learned()).toEqual(["Prefers maize bread", "Prefers walnut bread"]);
});

test("an imported conversation changes nothing that is newer, in whatever order it comes", async () => {
  await appliance.call("PUT", "/api/settings/memory", { enabled: true, extractEntities: true });
  const imported = async (...lines: [createdAt: string, userMessage: string][]) => {
    const body = lines.map(([createdAt, userMessage]) =>
      JSON.stringify({ externalId: "import", createdAt, userMessage }),
    );
    await fetch(`${appliance.url}/episodes/bulk?extract=true`, {
      method: "POST",
      headers: { authorization: `Bearer ${appliance.key}`, "content-type": "application/x-ndjson" },
      body: body.join("\n"),
    });
    return learned();
  };
  const first = await imported(
    ["2024-05-05", "I live in Oslo. I like rye."],
    ["2019-05-05", "I live in Rome. I don't like rye."],
    ["2019-05-06", "I moved from Rome to Paris. Forget that I like rye."],
  );
  expect(first).toContain("Lives in Oslo");
  expect(first).toContain("Prefers rye");
  const oslo = (await call("GET", "/entities")).data.find((row) => row.name === "Oslo")!;
  const links = (await call("GET", `/entities/${oslo.id}/relationships?direction=in`)).data;
  expect(links.map((row) => row.label)).toEqual(["lives in"]);

  await call("POST", "/api/memory", { key: "identity:home", content: "Lives in Bergen" });
  expect(await imported(["2025-01-01", "I live in Madrid."])).toContain("Lives in Bergen");
  expect(await imported(["2099-01-01", "I live in Vigo."])).toContain("Lives in Vigo");
});
