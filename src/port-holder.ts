/** Which process listens on a port: Linux only, and only where this user may look. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface PortHolder {
  readonly pid: number;
  readonly name: string;
}

/** Null when nobody listens there or it cannot be known. See proc(5), /proc/net/tcp. */
export function portHolder(port: number): PortHolder | null {
  const inodes = new Set([...listening("/proc/net/tcp", port), ...listening("/proc/net/tcp6", port)]);
  if (inodes.size === 0) return null;
  for (const pid of numbers("/proc")) {
    for (const fd of numbers(`/proc/${pid}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(link(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode === undefined || !inodes.has(inode)) continue;
      return { pid: Number(pid), name: text(`/proc/${pid}/comm`).trim() };
    }
  }
  return null;
}

/** Inodes of the sockets that listen on `port`. Columns: 1 local address:port in hex, 3 state (0A is LISTEN), 9 inode. */
function listening(table: string, port: number): string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  return text(table)
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[3] === "0A" && columns[1]?.endsWith(`:${hex}`))
    .map((columns) => columns[9] ?? "");
}

function numbers(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
