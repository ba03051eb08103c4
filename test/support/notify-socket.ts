/** The other end of sd_notify: a unix datagram socket, as systemd has it. Linux with glibc. */
import { dlopen, ptr } from "bun:ffi";

export interface NotifySocket {
  /** The next message that is there, else null. Never waits. */
  read(): string | null;
  /** The next message, looked for until it comes. */
  next(): Promise<string>;
  close(): void;
}

/** `path` may begin with `@`: an abstract name. */
export function notifySocket(path: string): NotifySocket {
  const libc = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
    recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
  });
  const name = Buffer.from(path.startsWith("@") ? `\0${path.slice(1)}` : path);
  const address = Buffer.concat([Buffer.from([1, 0]), name]);
  const socket = libc.symbols.socket(1, 2 | 0o4000, 0);
  if (libc.symbols.bind(socket, ptr(address), address.length) !== 0) throw new Error(`cannot bind ${path}`);
  const buffer = Buffer.alloc(4096);
  const read = (): string | null => {
    const size = Number(libc.symbols.recv(socket, ptr(buffer), buffer.length, 0));
    return size <= 0 ? null : buffer.toString("utf8", 0, size);
  };
  return {
    read,
    async next() {
      for (;;) {
        const message = read();
        if (message !== null) return message;
        await Bun.sleep(2);
      }
    },
    close() {
      libc.symbols.close(socket);
      libc.close();
    },
  };
}
