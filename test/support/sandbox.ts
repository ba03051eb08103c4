/** Mounts and users for end-to-end tests. Only root on Linux can make them; elsewhere those tests are skipped, and say so. */
import { spawnSync } from "node:child_process";

/** Null when this machine can make mounts of its own, else why not. */
export function noSandbox(): string | null {
  if (process.platform !== "linux") return "not Linux";
  if (process.getuid?.() !== 0) return "not root";
  const tried = spawnSync("unshare", ["--mount", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]);
  return tried.status === 0 ? null : "mounts are not allowed here";
}

/** Says once why tests are skipped. */
export function canSandbox(): boolean {
  const reason = noSandbox();
  if (reason !== null) process.stderr.write(`skipped: tests that need mounts (${reason})\n`);
  return reason === null;
}

/** A command that runs `command` after `setup` (shell) in a mount space of its own. */
export function inside(setup: string, command: readonly string[]): string[] {
  return [
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-ec",
    `${setup}\nexec "$@"`,
    "sh",
    ...command,
  ];
}

/** A command that runs `command` as a user who owns nothing. */
export function asNobody(command: readonly string[]): string[] {
  return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", ...command];
}
