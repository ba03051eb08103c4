/**
 * Tells systemd how the service is (sd_notify): one datagram to the socket that NOTIFY_SOCKET names. Bun has no unix
 * datagrams, so libc is asked; where it cannot be, `systemd-notify` is.
 * https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
 */

const AF_UNIX = 1;
/** SOCK_DGRAM | SOCK_CLOEXEC on Linux. */
const SOCKET_TYPE = 2 | 0o2000000;

/** Sends `state`, such as `READY=1`. Does nothing without a socket; never throws. */
export async function notifySystemd(socketPath: string | undefined, state: string): Promise<void> {
  if (socketPath === undefined || socketPath === "" || process.platform !== "linux") return;
  try {
    await send(socketPath, state);
  } catch {
    try {
      await Bun.spawn(["systemd-notify", state], { stdio: ["ignore", "ignore", "ignore"] }).exited;
    } catch {
      // Neither is there: the service still runs, systemd times out and says so.
    }
  }
}

async function send(path: string, state: string): Promise<void> {
  const { dlopen, ptr } = await import("bun:ffi");
  const libc = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
  });
  try {
    const name = Buffer.from(path.startsWith("@") ? `\0${path.slice(1)}` : path);
    const address = Buffer.alloc(2 + name.length);
    address.writeUInt16LE(AF_UNIX, 0);
    name.copy(address, 2);
    const body = Buffer.from(state);
    const socket = libc.symbols.socket(AF_UNIX, SOCKET_TYPE, 0);
    if (socket < 0) throw new Error("no socket");
    const sent = libc.symbols.sendto(socket, ptr(body), body.length, 0, ptr(address), address.length);
    libc.symbols.close(socket);
    if (Number(sent) !== body.length) throw new Error("not sent");
  } finally {
    libc.close();
  }
}
