import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unitText } from "../src/cli/service.ts";
import { notifySystemd } from "../src/notify.ts";
import { notifySocket } from "./support/notify-socket.ts";

test.skipIf(process.platform !== "linux")(
  "systemd is told over its socket, by path and by abstract name",
  async () => {
    const dir = mkdtempSync(join(tmpdir(), "notify-"));
    for (const path of [join(dir, "socket"), `@recollect-test-${crypto.randomUUID()}`]) {
      const socket = notifySocket(path);
      await notifySystemd(path, "READY=1");
      expect(socket.read()).toBe("READY=1");
      expect(socket.read()).toBeNull();
      socket.close();
    }
    rmSync(dir, { recursive: true, force: true });
  },
);

test("without a socket, or with one that is gone, nothing happens", async () => {
  await notifySystemd(undefined, "READY=1");
  await notifySystemd("", "READY=1");
  await notifySystemd("/nowhere/socket", "READY=1");
});

test("a unit quotes what systemd would read as its own", () => {
  const unit = unitText({
    command: ["/opt/my apps/100%/$x/recollect"],
    user: false,
    environment: { DATA_DIR: '/srv/a "b" $HOME' },
  });
  expect(unit).toContain('ExecStart="/opt/my apps/100%%/$$x/recollect" serve\n');
  expect(unit).toContain('Environment="DATA_DIR=/srv/a \\"b\\" $HOME"\n');
});

test.skipIf(Bun.which("systemd-analyze") === null)("both units are valid and hardened", () => {
  const dir = mkdtempSync(join(tmpdir(), "unit-"));
  for (const user of [false, true]) {
    const path = join(dir, "recollect.service");
    writeFileSync(path, unitText({ command: ["/bin/true"], user, environment: {} }));
    const verified = Bun.spawnSync(["systemd-analyze", "verify", ...(user ? ["--user"] : []), path], {
      stderr: "pipe",
    });
    expect(verified.stderr.toString().split("\n").filter((line) => line.includes("recollect.service"))).toEqual([]); // prettier-ignore
    const security = Bun.spawnSync(["systemd-analyze", "security", "--offline=true", path]).stdout.toString();
    const score = Number(/Overall exposure level[^:]*: ([\d.]+)/.exec(security)?.[1]);
    expect(score).toBeLessThanOrEqual(user ? 6 : 2);
  }
  rmSync(dir, { recursive: true, force: true });
});
