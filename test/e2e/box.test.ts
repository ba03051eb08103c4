import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Finding } from "../../src/doctor/types.ts";
import { binary, hostileFolder, runBinary, startBinary, wasFooled } from "../support/binary.ts";
import { startHub } from "../support/hub.ts";
import { testModels } from "../support/models.ts";
import { notifySocket } from "../support/notify-socket.ts";
import { asNobody, canSandbox, inside } from "../support/sandbox.ts";

setDefaultTimeout(60_000);

let dir: string;
let dataDir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "recollect-e2e-"));
  chmodSync(dir, 0o755);
  dataDir = join(dir, "data");
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

async function doctor(options: { command?: readonly string[]; env?: Record<string, string> } = {}) {
  const { stdout, stderr, code } = await runBinary(["doctor", "--json"], {
    dataDir,
    ...options,
    env: { PORT: "0", ...options.env },
  });
  if (stdout === "") throw new Error(stderr);
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  return { code, of: (check: string) => findings.find((finding) => finding.check === check) };
}

/** Every file below `native/`, by path. */
const natives = (): string[] =>
  readdirSync(join(dataDir, "native"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();

const models = testModels();
describe.skipIf(models === null)("models and native libraries, from the executable alone", () => {
  test("both models are brought by it and embed in it; libraries are written once and mended", async () => {
    const hub = await startHub(models!);
    const env = { HF_ENDPOINT: hub.endpoint };
    for (const name of ["static", "transformers"]) {
      expect(await runBinary(["model", "pull", name], { dataDir, env })).toMatchObject({ code: 0 });
    }
    const requests = hub.requests.length;
    const well = await doctor({ env });
    expect(well.of("model static")).toMatchObject({
      state: "ok",
      found: expect.stringContaining("256 dimensions"),
    });
    expect(well.of("model transformers")).toMatchObject({
      state: "ok",
      found: expect.stringContaining("384 dimensions"),
    });
    expect(well.of("sqlite-vec")).toMatchObject({
      state: "ok",
      found: expect.stringContaining(join(dataDir, "native")),
    });
    expect(hub.requests.length).toBe(requests);

    if (canSandbox()) {
      // No interface at all: whatever would connect would fail.
      const alone = await doctor({ command: ["unshare", "--net", binary()] });
      expect([alone.of("model static")?.state, alone.of("model transformers")?.state]).toEqual(["ok", "ok"]);
    }

    const files = natives();
    expect(new Set(files.map((file) => file.split("/").at(-1)))).toEqual(
      new Set(["libonnxruntime.so.1", "onnxruntime_binding.node", "vec0.so"]),
    );
    const before = files.map((file) => statSync(file).ino);
    await doctor({ env });
    expect(natives().map((file) => statSync(file).ino)).toEqual(before);

    const good = files.map((file) => readFileSync(file));
    for (const file of files) truncateSync(file, 5000);
    writeFileSync(`${files[0]!}.1234.abcd.tmp`, "what a crash leaves");
    expect((await doctor({ env })).of("model transformers")?.state).toBe("ok");
    expect(files.map((file, at) => readFileSync(file).equals(good[at]!))).toEqual([true, true, true]);
    await hub.close();
  }, 60_000);
});

describe.skipIf(!canSandbox())("a box that is not friendly", () => {
  test("another user, a folder that cannot be written, /tmp without exec, data on another file system", async () => {
    const folder = hostileFolder();
    chmodSync(folder, 0o555);
    const disk = join(dir, "disk");
    mkdirSync(disk);
    const setup = `
      mount -t tmpfs -o size=64m,mode=0777 none ${disk}
      mount --bind ${folder} ${folder}
      mount -o remount,bind,ro ${folder}
      mount -t tmpfs -o noexec,mode=1777 none /var/tmp
      cd ${folder}`;
    const command = inside(setup, asNobody([join(folder, "recollect")]));
    await using server = await startBinary({
      command,
      cwd: folder,
      dataDir: join(disk, "data"),
      args: ["--demo"],
      env: { HOME: "/nonexistent", TMPDIR: "/var/tmp" },
    });
    const answer = await fetch(`${server.url}/api/memory`, {
      headers: { authorization: `Bearer ${server.apiKey}` },
    });
    expect(answer.status).toBe(200);
    expect(readFileSync(`/proc/${server.pid}/status`, "utf8")).toMatch(/^Uid:\s+65534\s/m);
    expect(await server.stop()).toBe(0);
    expect(wasFooled(folder)).toBe(false);
    chmodSync(folder, 0o755);
    rmSync(folder, { recursive: true, force: true });
  }, 30_000);

  test("data on a file system without exec: search still works, and the doctor says what is missing", async () => {
    mkdirSync(dataDir);
    const command = inside(`mount -t tmpfs -o noexec,size=64m none ${dataDir}`, [binary()]);
    const { of } = await doctor({ command });
    expect(of("sqlite-vec")).toMatchObject({ state: "warn", todo: expect.stringContaining("noexec") });
    await using server = await startBinary({ command, dataDir });
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  }, 30_000);

  test("a folder of somebody else is a sentence, exit 1", async () => {
    mkdirSync(dataDir, { mode: 0o700 });
    const { code, stderr } = await runBinary(["serve", "--port", "0", "--data-dir", dataDir], {
      command: asNobody([binary()]),
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^recollect: The data folder .* cannot be used \(EACCES\)\. Give one that can be written with --data-dir or DATA_DIR\.\n$/,
    );
  });

  test("files of somebody else in a folder of one's own are a sentence too", async () => {
    expect((await runBinary(["key", "create", "x"], { dataDir })).code).toBe(0);
    chownSync(dataDir, 65534, 65534);
    const { code, stderr } = await runBinary(["serve", "--port", "0", "--data-dir", dataDir], {
      command: asNobody([binary()]),
    });
    expect(code).toBe(1);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr).toStartWith("recollect: ");
  });

  test("a disk that fills at any step of the first start: a sentence, and a good start once there is room", async () => {
    mkdirSync(dataDir);
    // The same small disk for each size: first too small, then large enough.
    for (const size of [16, 64, 128, 256, 512, 1024, 2048]) {
      const script = `
        mount -t tmpfs -o size=${size}k none ${dataDir}
        timeout -s KILL 20 "$1" key create first > ${dir}/out 2> ${dir}/err && echo 0 > ${dir}/code || echo $? > ${dir}/code
        mount -o remount,size=64m ${dataDir}`;
      const { code, stdout, stderr } = await runBinary(["key", "list"], {
        command: [
          "unshare",
          "--mount",
          "--propagation",
          "private",
          "sh",
          "-c",
          `${script}\nexec "$@"`,
          "sh",
          binary(),
        ],
        dataDir,
      });
      const first = {
        code: Number(readFileSync(join(dir, "code"), "utf8")),
        err: readFileSync(join(dir, "err"), "utf8"),
      };
      if (first.code !== 0) {
        expect([size, first.code]).toEqual([size, 1]);
        expect(first.err).toMatch(/^recollect: .*(disk is full|cannot be used|full|space).*\n$/i);
      }
      expect([size, code, stderr]).toEqual([size, 0, ""]);
      if (first.code === 0) expect(stdout).toContain("first");
    }
  }, 60_000);

  test("serve on a full disk ends with a sentence, and starts when there is room", async () => {
    mkdirSync(dataDir);
    for (const size of [16, 96, 256, 440, 480, 512, 540]) {
      const script = `
        mount -t tmpfs -o size=${size}k none ${dataDir}
        timeout -s KILL 20 "$1" serve --port 0 > ${dir}/out 2> ${dir}/err & pid=$!
        for i in $(seq 200); do grep -q Memory ${dir}/out && break; kill -0 $pid 2>/dev/null || break; sleep 0.05; done
        kill -TERM $pid 2>/dev/null; wait $pid; echo $? > ${dir}/code
        mount -o remount,size=64m ${dataDir}`;
      const command = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "bash",
        "-c",
        `${script}\nexec "$@"`,
        "bash",
        binary(),
      ];
      await using server = await startBinary({ command: command, dataDir, env: { DATA_DIR: dataDir } });
      const code = Number(readFileSync(join(dir, "code"), "utf8"));
      if (code !== 0 && code !== 143) {
        expect([size, code, readFileSync(join(dir, "err"), "utf8")]).toEqual([
          size,
          1,
          expect.stringMatching(/recollect: .*(full|space|cannot be used)/i),
        ]);
      }
      // What is shown once is shown by the start that works.
      if (code === 1)
        expect([size, server.apiKey, server.managementToken]).toEqual([
          size,
          expect.any(String),
          expect.any(String),
        ]);
      expect((await fetch(`${server.url}/health`)).status).toBe(200);
      expect(await server.stop()).toBe(0);
    }
  }, 90_000);

  test("a /proc with processes alone, as the service sees it", async () => {
    const command = inside("mount -t proc -o subset=pid,hidepid=invisible proc /proc", asNobody([binary()]));
    mkdirSync(dataDir);
    chownSync(dataDir, 65534, 65534);
    await using server = await startBinary({ command, dataDir });
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });
});

test.skipIf(!canSandbox() || Bun.which("systemctl") === null)(
  "a service is installed for the machine, and not from a place it would not see",
  async () => {
    const setup = `
    mount -t tmpfs none /opt && cp ${binary()} /opt/recollect
    mount -t tmpfs none /etc/systemd/system`;
    const show = [
      ...inside(setup, [
        "sh",
        "-ec",
        "/opt/recollect service install --port 8080 >&2 && cat /etc/systemd/system/recollect.service",
      ]),
    ];
    const { code, stdout, stderr } = await runBinary([], { command: show });
    expect([code, stdout]).toEqual([0, expect.stringContaining("ExecStart=/opt/recollect serve\n")]);
    expect(stdout).toContain("Environment=PORT=8080\n");
    expect(stdout).toContain("StateDirectory=recollect\n");
    expect(stderr).toContain("systemctl daemon-reload && systemctl enable --now recollect");
    const elsewhere = inside(`mount -t tmpfs none /var/tmp && cp ${binary()} /var/tmp/recollect`, [
      "/var/tmp/recollect",
    ]);
    const refused = await runBinary(["service", "install"], { command: elsewhere });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("install -m 755");
  },
);

test.skipIf(process.platform !== "linux")(
  "a reader that leaves before the banner ends no server",
  async () => {
    const path = join(dir, "notify");
    const socket = notifySocket(path);
    const child = Bun.spawn(
      ["sh", "-c", '"$0" serve --demo --port 0 --data-dir "$1" | true', binary(), dataDir],
      {
        env: { PATH: process.env["PATH"] ?? "", HOME: dir, NOTIFY_SOCKET: path },
        stdout: "ignore",
      },
    );
    // Comes after the banner.
    expect(await socket.next()).toBe("READY=1");
    const { pid, url } = JSON.parse(readFileSync(join(dataDir, "server.json"), "utf8")) as {
      pid: number;
      url: string;
    };
    expect((await fetch(`${url}/health`)).status).toBe(200);
    process.kill(pid, "SIGTERM");
    expect(await socket.next()).toBe("STOPPING=1");
    await child.exited;
    socket.close();
  },
);

test.skipIf(process.platform !== "linux")("nohup holds when the terminal goes away", async () => {
  await using server = await startBinary({ command: ["nohup", binary()], dataDir });
  process.kill(server.pid, "SIGHUP");
  for (let times = 0; times < 5; times++) {
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    await Bun.sleep(40);
  }
  expect(await server.stop()).toBe(0);
});

test("IPv6 alone", async () => {
  await using server = await startBinary({ dataDir, args: ["--host", "::1"] });
  expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
  expect((await fetch(`${server.url}/health`)).status).toBe(200);
  expect(await server.stop()).toBe(0);
});

test.skipIf(process.platform !== "linux")("systemd is told when it listens, and when it stops", async () => {
  const path = join(dir, "notify");
  const socket = notifySocket(path);
  await using server = await startBinary({ dataDir, env: { NOTIFY_SOCKET: path } });
  expect(await socket.next()).toBe("READY=1");
  expect((await fetch(`${server.url}/health`)).status).toBe(200);
  expect(await server.stop()).toBe(0);
  expect(socket.read()).toBe("STOPPING=1");
  socket.close();
});

test("a damaged database: a clear sentence, the file untouched, restore named; and restore mends it", async () => {
  expect((await runBinary(["key", "create", "laptop"], { dataDir })).code).toBe(0);
  const copy = join(dir, "copy.tar");
  expect((await runBinary(["backup", copy], { dataDir })).code).toBe(0);
  const path = join(dataDir, "recollect.db");
  for (const damage of [
    readFileSync(path).fill(0, 0, 100),
    readFileSync(path).fill(7, 0, 60_000),
    Buffer.from("x".repeat(9000)),
  ]) {
    writeFileSync(path, damage);
    for (const tail of ["-wal", "-shm"]) rmSync(path + tail, { force: true });
    const { code, stderr } = await runBinary(["serve", "--port", "0"], { dataDir });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^recollect: The database is damaged; it was left as it is\. .*recollect restore FILE --force\n$/,
    );
    expect(readFileSync(path).equals(damage)).toBe(true);
  }
  expect((await runBinary(["restore", copy, "--force"], { dataDir })).code).toBe(0);
  expect((await runBinary(["key", "list"], { dataDir })).stdout).toContain("laptop");
});

test("run from source and the executable take turns on one folder", async () => {
  const source = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
  for (const command of [source, [binary()], source, [binary()]]) {
    await using server = await startBinary({ command, dataDir });
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  }
  expect(existsSync(join(dataDir, "server.json"))).toBe(false);
});
