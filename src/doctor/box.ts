/** The machine and the folder: CPU, clock, port, folder, disk. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from "node:fs";
import { arch, availableParallelism, platform, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { isLoopback, type Config } from "../config.ts";
import { readHolder } from "../db/lock.ts";
import { nativeBundle } from "../native-files.ts";
import { portHolder } from "../port-holder.ts";
import { bad, ok, warn, why, type Finding } from "./types.ts";

const LITTLE_DISK = 500e6;
const NO_DISK = 50e6;

export function cpu(): Finding {
  const build = nativeBundle === null ? "run from source" : `built for ${nativeBundle.target}`;
  const flags = platform() === "linux" && arch() === "x64" ? cpuFlags() : undefined;
  const avx2 = flags === undefined ? "" : flags.includes(" avx2") ? ", AVX2" : ", no AVX2";
  const found = `${availableParallelism()} cores, ${arch()}${avx2}, ${(totalmem() / 1e9).toFixed(1)} GB, ${build}.`;
  return avx2 === ", no AVX2" && nativeBundle?.target === "linux-x64"
    ? warn("cpu", found, "Take the build linux-x64-baseline, which needs no AVX2.")
    : ok("cpu", found);
}

/** A clock that stands before this program was made breaks expiry and TLS. */
export function clock(now: number, newestRow: number | null): Finding {
  const day = 86_400_000;
  const found = `It is ${new Date(now).toISOString()}.`;
  if (newestRow !== null && newestRow > now + day) {
    const todo = "Set the clock (timedatectl set-ntp true); what was written under the other time is kept.";
    return bad("clock", `${found} The newest record is of ${new Date(newestRow).toISOString()}.`, todo);
  }
  return ok("clock", found);
}

export function dataFolder(dataDir: string): Finding {
  const check = "data folder";
  if (!existsSync(dataDir)) {
    const parent = nearest(dataDir);
    try {
      accessSync(parent, constants.W_OK | constants.X_OK);
      return ok(check, `${dataDir} is not there yet; the first start makes it.`);
    } catch {
      return bad(
        check,
        `${dataDir} is not there and ${parent} cannot be written.`,
        "Give a folder that can be written with --data-dir or DATA_DIR.",
      );
    }
  }
  const probe = join(dataDir, `.doctor-${crypto.randomUUID().slice(0, 8)}`);
  try {
    const handle = openSync(probe, "wx", 0o600);
    try {
      writeSync(handle, Buffer.alloc(4096));
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const todo =
      code === "ENOSPC"
        ? "Free some space."
        : code === "EROFS"
          ? "Mount that file system so that it can be written, or give another folder with --data-dir or DATA_DIR."
          : "Give this user the folder (chown), or another one with --data-dir or DATA_DIR.";
    return bad(check, `${dataDir} cannot be written: ${why(error)}.`, todo);
  } finally {
    removeProbe(probe);
  }
  const { mode } = statSync(dataDir);
  return platform() !== "win32" && (mode & 0o077) !== 0
    ? warn(
        check,
        `${dataDir} can be read by others (mode ${(mode & 0o777).toString(8)}).`,
        `chmod 700 ${dataDir}`,
      )
    : ok(check, `${dataDir} can be written and is closed to others.`);
}

/** On a file system that is read only even the absent file cannot be removed. */
function removeProbe(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // That the folder cannot be written is said already.
  }
}

export function disk(dataDir: string): Finding {
  const { bavail, bsize } = statfsSync(nearest(dataDir));
  const free = bavail * bsize;
  const found = `${(free / 1e9).toFixed(1)} GB are free for ${dataDir}.`;
  if (free < NO_DISK)
    return bad("disk", found, "Free some space: nothing can be stored when the disk is full.");
  return free < LITTLE_DISK ? warn("disk", found, "Free some space soon.") : ok("disk", found);
}

/** Free, or held by this folder's own server. */
export function port(config: Config): Finding {
  const { HOST, PORT, dataDir } = config;
  const holder = readHolder(dataDir);
  try {
    const probe = Bun.listen({ hostname: HOST, port: PORT, socket: { data() {} } });
    probe.stop(true);
    return (
      exposed(config) ??
      ok("port", PORT === 0 ? `Any free port on ${HOST}.` : `${HOST} port ${PORT} is free.`)
    );
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") {
      const by = portHolder(PORT);
      if (by !== null && by.pid === holder?.pid)
        return (
          exposed(config) ?? ok("port", `Recollect (process ${by.pid}) listens on ${HOST} port ${PORT}.`)
        );
      const name = by === null ? "another program" : `${by.name} (process ${by.pid})`;
      return bad(
        "port",
        `${HOST} port ${PORT} is in use by ${name}.`,
        "Stop it, or choose another port with --port or PORT.",
      );
    }
    if (code === "EACCES")
      return bad(
        "port",
        `Port ${PORT} needs rights that this user does not have.`,
        "Choose one above 1023 with --port or PORT.",
      );
    return bad(
      "port",
      `${HOST} port ${PORT} cannot be listened on: ${why(error)}.`,
      "Set HOST to an address of this machine: 127.0.0.1, or ::1 where there is IPv6 only.",
    );
  }
}

function exposed({ HOST, REQUIRE_API_KEY }: Config): Finding | null {
  if (isLoopback(HOST) || REQUIRE_API_KEY) return null;
  return bad(
    "port",
    `HOST ${HOST} can be reached by others and REQUIRE_API_KEY is false.`,
    "Set REQUIRE_API_KEY=true, or start with --open if that is meant.",
  );
}

/** The folder itself, or the nearest one above it that exists. */
function nearest(path: string): string {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

/** A sandbox may hide /proc/cpuinfo. */
function cpuFlags(): string | undefined {
  try {
    return /^flags\s*:.*$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[0];
  } catch {
    return undefined;
  }
}
