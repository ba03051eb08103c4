import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createModels, type ModelStatus } from "../../src/embed/models.ts";
import { openStatic } from "../../src/embed/static.ts";
import { startHub, type Hub } from "../support/hub.ts";
import { canSandbox, inside } from "../support/sandbox.ts";
import { STATIC_REPO, testModels, TRANSFORMERS_REPO } from "../support/models.ts";

setDefaultTimeout(60_000);

const models = testModels();
const POTION = "minishlab/potion-base-8M";
const TABLE = "model.safetensors";

describe.skipIf(models === null)("models", () => {
  let hub: Hub;
  let dir: string;
  beforeEach(async () => {
    hub = await startHub(models!);
    dir = mkdtempSync(join(tmpdir(), "models-"));
  });
  afterEach(async () => {
    await hub.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const create = (
    more: { token?: string; idleMs?: number; freeBytes?: () => number; endpoint?: string } = {},
  ) =>
    createModels({
      modelsDir: join(dir, "embeddings"),
      dataDir: dir,
      repos: { static: POTION, transformers: TRANSFORMERS_REPO },
      hub: {
        endpoint: more.endpoint ?? hub.endpoint,
        token: more.token ?? null,
        retryMs: 1,
        idleMs: more.idleMs ?? 5000,
      },
      ...(more.freeBytes === undefined ? {} : { freeBytes: more.freeBytes }),
    });
  const table = () => join(dir, "embeddings", POTION, TABLE);
  const same = () => readFileSync(table()).equals(readFileSync(join(models!, STATIC_REPO, TABLE)));
  const reason = (run: Promise<unknown>) =>
    run.then(
      () => "it worked",
      (error: Error) => error.message,
    );
  const left = () =>
    existsSync(join(dir, "embeddings/.pull"))
      ? readdirSync(join(dir, "embeddings/.pull"), { recursive: true })
      : [];

  test("pull brings both, with progress, and neither asks the network again", async () => {
    const all = create();
    expect(all.list()).toEqual([
      { name: "static", repo: POTION, dimensions: null, state: "absent", bytes: 0, totalBytes: 0 },
      {
        name: "transformers",
        repo: TRANSFORMERS_REPO,
        dimensions: null,
        state: "absent",
        bytes: 0,
        totalBytes: 0,
      },
    ]);
    const seen: ModelStatus[] = [];
    const done = await all.pull("static", (status) => seen.push(status));
    expect(done).toMatchObject({ state: "ready", dimensions: 256 });
    expect(seen.length).toBeGreaterThan(1);
    expect(seen.every((one) => one.state === "downloading" && one.totalBytes === done.totalBytes)).toBe(true);
    expect(seen.map((one) => one.bytes)).toEqual(seen.map((one) => one.bytes).toSorted((a, b) => a - b));
    expect(seen.at(-1)!.bytes).toBe(done.totalBytes);
    expect(same()).toBe(true);
    await all.pull("transformers");
    expect(all.list().map((one) => one.state)).toEqual(["ready", "ready"]);
    expect(left()).toEqual([]);

    const before = hub.requests.length;
    await all.pull("static");
    const embedder = await openStatic(join(dir, "embeddings", POTION), POTION);
    expect(await embedder.embed(["offline"])).toHaveLength(1);
    expect(hub.requests.length).toBe(before);
  });

  test("a connection that breaks is continued where it broke", async () => {
    hub.faults.cutAfter = [3_000_000, 5_000_000, 1_000_000];
    await create().pull("static");
    expect(same()).toBe(true);
    const ranges = hub.requests.filter((one) => one.includes("bytes="));
    expect(ranges.length).toBeGreaterThanOrEqual(3);
    expect(hub.bytes()).toBeLessThan(33_000_000);
  });

  test("a download that failed counts as none, and the next pull continues it", async () => {
    hub.faults.cutAfter = [9_000_000, 0, 0, 0, 0, 0, 0];
    const first = create();
    const why = await reason(first.pull("static"));
    expect(why).toMatch(/(broke after 9\.0 of 31\.3 MB of model\.safetensors|could not be reached)/);
    expect(first.status("static")).toMatchObject({ state: "failed", error: why });
    expect(existsSync(join(dir, "embeddings", POTION))).toBe(false);

    hub.faults.cutAfter = [];
    const later = create();
    expect(later.status("static")).toMatchObject({
      state: "failed",
      error: "The download was interrupted. Pull it again: it continues.",
    });
    const before = hub.bytes();
    await later.pull("static");
    expect(same()).toBe(true);
    expect(hub.bytes() - before).toBeLessThan(23_000_000);
    expect(later.status("static").state).toBe("ready");
  });

  test("a hub that ignores Range starts anew", async () => {
    hub.faults.cutAfter = [9_000_000];
    hub.faults.noRange = true;
    await create().pull("static");
    expect(same()).toBe(true);
  });

  test("what arrives damaged is not kept", async () => {
    hub.faults.damage = true;
    const all = create();
    expect(await reason(all.pull("static"))).toBe(
      "model.safetensors arrived damaged (another SHA-256 than the hub states). Nothing was kept; try again.",
    );
    expect(all.status("static").state).toBe("failed");
    expect(left().filter((name) => String(name).startsWith(TABLE))).toEqual([]);
    hub.faults.damage = false;
    await all.pull("static");
    expect(same()).toBe(true);
  });

  test("a half file of somebody else's making is found out by its hash", async () => {
    hub.faults.cutAfter = [9_000_000, 0, 0, 0, 0, 0, 0];
    await reason(create().pull("static"));
    const part = left().find((name) => String(name).endsWith(".part"));
    writeFileSync(join(dir, "embeddings/.pull", String(part)), new Uint8Array(9_000_000));
    hub.faults.cutAfter = [];
    expect(await reason(create().pull("static"))).toContain("arrived damaged");
    await create().pull("static");
    expect(same()).toBe(true);
  });

  test("small files are checked by their git hash, weak tags and missing ones are accepted", async () => {
    hub.faults.weakEtag = true;
    await create().pull("static");
    expect(same()).toBe(true);
    rmSync(join(dir, "embeddings"), { recursive: true });
    hub.faults.weakEtag = false;
    hub.faults.noEtag = true;
    await create().pull("static");
    expect(same()).toBe(true);
  });

  test("a token goes to the hub and not to the host it redirects to", async () => {
    hub.faults.token = "hf_secret";
    expect(await reason(create().pull("static"))).toMatch(
      /^127\.0\.0\.1:\d+ refuses .* \(401\)\. Set HF_TOKEN, or bring the files with: recollect model import DIR$/,
    );
    await create({ token: "hf_secret" }).pull("static");
    expect(same()).toBe(true);
    expect(hub.leaked).toEqual([]);
  });

  const faults: [what: string, set: (hub: Hub) => void, sentence: RegExp][] = [
    ["no such file", (hub) => (hub.faults.absent = TABLE), /has no file model\.safetensors in minishlab\/potion-base-8M \(404\)\.$/],
    ["a hub in trouble", (hub) => (hub.faults.statuses = Array<number>(9).fill(503)), /failed \(503\)\. Try again later\.$/],
    ["a circle", (hub) => (hub.faults.circle = true), /redirects in a circle\.$/],
    ["more than announced", (hub) => (hub.faults.tooMuch = true), /sends more of config\.json than it announced\.$/],
    ["silence", (hub) => (hub.faults.silent = true), /was silent for 0\.1 s\. Try again, set HF_ENDPOINT to a mirror, or bring the files with: recollect model import DIR$/],
  ]; // prettier-ignore
  for (const [what, set, sentence] of faults) {
    test(`${what}: a clear reason, no model`, async () => {
      set(hub);
      const all = create(hub.faults.silent === true ? { idleMs: 100 } : {});
      expect(await reason(all.pull("static"))).toMatch(sentence);
      expect(all.status("static").state).toBe("failed");
    });
  }

  test("a hub in trouble for a moment is asked again", async () => {
    hub.faults.statuses = [503, 429, 500];
    await create().pull("static");
    expect(same()).toBe(true);
  });

  test("no network is said so", async () => {
    await hub.close();
    expect(await reason(create().pull("static"))).toMatch(
      /could not be reached\. Try again, set HF_ENDPOINT/,
    );
    hub = await startHub(models!);
  });

  test("too little room is said before anything is fetched", async () => {
    const why = await reason(create({ freeBytes: () => 5_000_000 }).pull("static"));
    expect(why).toMatch(/^The model needs 31\.8 MB and 5\.0 MB are free in /);
    expect(hub.requests.filter((one) => one.startsWith("GET"))).toEqual([]);
  });

  test.skipIf(!canSandbox())("a disk that fills on the way is said, and counts as no model", () => {
    mkdirSync(join(dir, "small"));
    const script = [
      process.execPath,
      join(import.meta.dir, "../support/pull.ts"),
      join(dir, "small"),
      hub.endpoint,
    ];
    const child = Bun.spawn(inside(`mount -t tmpfs -o size=8m none ${dir}/small`, script), {
      stdout: "pipe",
    });
    return new Response(child.stdout).text().then((text) => {
      expect(JSON.parse(text)).toMatchObject({
        state: "failed",
        error: "The disk is full. Free some space and try again: the download continues.",
      });
    });
  });

  test("an aborted pull stops; two at once are one", async () => {
    const abort = new AbortController();
    const all = create();
    const aborted = all.pull("static", () => abort.abort(new Error("enough")), abort.signal);
    expect(await reason(aborted)).toBe("enough");
    await Promise.all([all.pull("static"), all.pull("static")]);
    expect(hub.requests.filter((one) => one.startsWith("GET /blob/")).length).toBeLessThanOrEqual(2);
    expect(same()).toBe(true);
  });

  test("another process that downloads the same model is named", async () => {
    mkdirSync(join(dir, "embeddings/.pull/minishlab--potion-base-8M"), { recursive: true });
    writeFileSync(join(dir, "embeddings/.pull/minishlab--potion-base-8M/lock"), String(process.ppid));
    const all = create();
    expect(all.status("static").state).toBe("downloading");
    expect(await reason(all.pull("static"))).toBe(
      `Process ${process.ppid} is downloading this model already.`,
    );
    // One that is gone does not count.
    const gone = Bun.spawnSync(["true"]).pid;
    writeFileSync(join(dir, "embeddings/.pull/minishlab--potion-base-8M/lock"), String(gone));
    await all.pull("static");
    expect(same()).toBe(true);
  });

  test("import takes a model folder, or one in hub layout, without any network", async () => {
    const all = create({ endpoint: "http://127.0.0.1:9" });
    expect(await all.importFrom(join(models!, STATIC_REPO))).toMatchObject({
      name: "static",
      repo: POTION,
      state: "ready",
    });
    expect(same()).toBe(true);
    expect(await all.importFrom(models!, "transformers")).toMatchObject({
      name: "transformers",
      state: "ready",
      dimensions: 384,
    });
    expect(await reason(all.importFrom(dir))).toMatch(/^There is no model in /);
  });

  test("import of a damaged model leaves the good one in place", async () => {
    const all = create();
    await all.importFrom(join(models!, STATIC_REPO));
    const bad = join(dir, "stick");
    cpSync(join(models!, STATIC_REPO), bad, { recursive: true });
    truncateSync(join(bad, TABLE), 1_000_000);
    expect(await reason(all.importFrom(bad))).toContain("the file is cut off");
    expect(same()).toBe(true);
    expect(all.status("static").state).toBe("ready");
  });

  test("remove takes the model and half downloads away", async () => {
    const all = create();
    await all.importFrom(join(models!, STATIC_REPO));
    expect(all.remove("static")).toBe(true);
    expect(all.status("static").state).toBe("absent");
    expect(all.remove("static")).toBe(false);
    hub.faults.cutAfter = [9_000_000, 0, 0, 0, 0, 0, 0];
    await reason(all.pull("static"));
    all.remove("static");
    expect(all.status("static")).toMatchObject({ state: "absent", bytes: 0 });
  });
});
