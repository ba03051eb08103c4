/** A box with a little of everything, made through its public faces, for pictures and checks of every page. */
import { type Appliance, until } from "./appliance.ts";
import { remember } from "./studio.ts";

export type Filled = { memory: string; session: number; entity: number; receipt: string; pending: string };

/** One chat request as a client sends it; gives the receipt's id. */
export async function chat(box: Appliance, content: string, session: string): Promise<string> {
  const response = await fetch(`${box.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${box.key}`,
      "content-type": "application/json",
      "x-session-id": session,
    },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content }] }),
  });
  await response.text();
  if (!response.ok) throw new Error(`chat: ${response.status}`);
  return response.headers.get("x-memory-receipt") ?? "";
}

const get = async <T>(box: Appliance, path: string): Promise<T> => (await box.call("GET", path)).body as T;
const newest = async (box: Appliance, query: string) =>
  (await get<{ data: { id: string }[] }>(box, `/api/memory?${query}`)).data[0]?.id;

export async function fill(box: Appliance): Promise<Filled> {
  await remember(box, "Always answer in Finnish when the question is in Finnish", {
    type: "procedural",
    key: "instruction:answer_in_finnish",
    pinned: true,
  });
  await remember(box, "Käyttää mieluummin pnpm:ää kuin npm:ää", { key: "preference:pnpm" });
  await remember(box, "喜欢简短的回答", { key: "preference:简短的回答" });
  await remember(box, "يفضل الشاي على القهوة", { key: "preference:tea" });
  for (let i = 0; i < 24; i++)
    await remember(box, `Knows page ${i} of the manual for the old printer by heart`);
  await chat(box, "I decided to use MySQL for the Juniper project.", "juniper-planning");
  await until("a first memory", () => newest(box, "q=Juniper"));
  const memory = (await newest(box, "q=Juniper"))!;
  await box.call("PUT", `/api/memory/${memory}`, {
    content: "Decided to use Postgres for the Juniper project",
  });
  const receipt = await chat(box, "Which database do we use for the Juniper project?", "juniper-planning");
  await until(
    "its receipt",
    async () => (await box.call("GET", `/api/memory/receipts/${receipt}`)).status === 200,
  );
  await chat(
    box,
    "The token is sk-abcdefghijklmnopqrstuvwxyz0123456789, why does the importer say 401?",
    "importer",
  );

  await box.call("PUT", "/api/settings/memory", { autoApprove: false });
  await chat(box, "I usually run the tests before every push.", "review of the parser");
  const pending = await until("a waiting memory", () => newest(box, "status=pending"));
  await box.call("PUT", "/api/settings/memory", { autoApprove: true });

  const entity = async (name: string, type: string) =>
    ((await box.call("POST", "/entities", { name, type, apiKeyId: box.keyId })).body as { id: number }).id;
  const juniper = await entity("Juniper", "project");
  for (const [name, type, label, away] of [
    ["Postgres", "technology", "uses", true],
    ["Office cluster", "machine", "runs on", true],
    ["Noor", "person", "works on", false],
    ["Tove", "person", "works on", false],
    ["Importer", "service", "part of", false],
  ] as const) {
    const other = await entity(name, type);
    const link = away ? { fromId: juniper, toId: other } : { fromId: other, toId: juniper };
    await box.call("POST", "/relationships", { ...link, label, apiKeyId: box.keyId });
  }
  const sessions = await get<{ data: { id: number; externalId: string }[] }>(box, "/sessions");
  const session = sessions.data.find((one) => one.externalId === "juniper-planning")!.id;
  return { memory, session, entity: juniper, receipt, pending };
}

/** Every page and every dialog, by the name of its picture. */
export const pagesOf = (ids: Filled): [name: string, path: string][] => [
  ["memories", "/dashboard/memory"],
  ["memories-empty", "/dashboard/memory?q=sourdough"],
  ["memories-archived", "/dashboard/memory?status=archived"],
  ["memories-add", "/dashboard/memory/new"],
  ["memories-edit", `/dashboard/memory/${ids.memory}/edit`],
  ["memories-compact", "/dashboard/memory/compact"],
  ["memories-import", "/dashboard/memory/import"],
  ["memories-delete", `/dashboard/memory/${ids.memory}/delete`],
  ["memory-proof", "/dashboard/memory/deleted?found=0-0-0-0-0-0-0&qdrant=off"],
  ["review", "/dashboard/memory/review"],
  ["memory", `/dashboard/memory/${ids.memory}`],
  ["playground", "/dashboard/memory?tab=playground"],
  ["playground-answer", "/dashboard/memory?tab=playground&query=Which+database+does+Juniper+use"],
  ["engine", "/dashboard/memory?tab=engine"],
  ["engine-cleanup", "/dashboard/settings/qdrant/cleanup"],
  ["engine-backend", "/dashboard/settings/backends/new"],
  ["activity-receipts", "/dashboard/activity/receipts"],
  ["activity-receipt", `/dashboard/activity/receipts/${ids.receipt}`],
  ["activity-sessions", "/dashboard/activity/sessions"],
  ["activity-session", `/dashboard/activity/sessions/${ids.session}`],
  ["activity-session-delete", `/dashboard/activity/sessions/${ids.session}/delete`],
  ["activity-entities", `/dashboard/activity/entities/${ids.entity}`],
  ["activity-entity-edit", `/dashboard/activity/entities/${ids.entity}/edit`],
  ["activity-usage", "/dashboard/activity/usage"],
  ["connect", "/dashboard/connect"],
  ["connect-codex", "/dashboard/connect?client=codex"],
  ["settings-memory", "/dashboard/settings/memory"],
  ["settings-keys", "/dashboard/settings/keys"],
  ["settings-key-new", "/dashboard/settings/keys/new"],
  ["settings-providers", "/dashboard/settings/providers"],
  ["settings-backup", "/dashboard/settings/backup"],
  ["error", "/dashboard/nothing-here"],
];
