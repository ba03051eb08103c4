import { afterAll, describe, expect, test } from "bun:test";
import net from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { TransportError } from "../src/upstream/errors.ts";
import type { TransportKind } from "../src/upstream/errors.ts";
import { targetOf } from "../src/upstream/target.ts";
import { createTransport } from "../src/upstream/transport.ts";

const servers: net.Server[] = [];
const transport = createTransport({
  resolve: async (host) => {
    if (host === "metadata.example") return ["93.184.216.34", "169.254.169.254"];
    if (host === "rebound.example") return ["::ffff:169.254.169.254"];
    if (host === "two.example") return ["127.0.0.2", "127.0.0.1"];
    if (host === "good.example") return ["127.0.0.1"];
    throw new Error("ENOTFOUND");
  },
});
afterAll(() => {
  transport.close();
  for (const server of servers) server.close();
});

/** A raw server on loopback; `serve` gets each connection. */
async function listen(
  serve: (socket: Socket, count: number) => void,
): Promise<{ port: number; connections: () => number }> {
  let count = 0;
  const server = net.createServer((socket) => {
    socket.setNoDelay(true);
    socket.on("error", () => {});
    serve(socket, ++count);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, connections: () => count };
}

type Answer = { status: number; text: string; error: TransportKind | null };

function ask(
  url: string,
  options: {
    timeouts?: [number, number, number];
    signal?: AbortSignal;
    body?: Buffer | ReadableStream<Uint8Array>;
  } = {},
): Promise<Answer> {
  const [connectMs, firstByteMs, idleMs] = options.timeouts ?? [5000, 5000, 5000];
  return new Promise((resolve) => {
    const answer: Answer = { status: 0, text: "", error: null };
    transport.request(
      {
        target: targetOf(url),
        method: "POST",
        headers: [["content-type", "application/json"]],
        body: options.body ?? Buffer.from("{}"),
        timeouts: { connectMs, firstByteMs, idleMs },
        signal: options.signal ?? new AbortController().signal,
      },
      {
        head: (head) => (answer.status = head.status),
        data: (chunk) => (answer.text += chunk.toString()),
        end: () => resolve(answer),
        fail: (error) => {
          expect(error).toBeInstanceOf(TransportError);
          expect(error.message).not.toMatch(/127\.0\.0|ECONN/);
          resolve({ ...answer, error: error.kind });
        },
      },
    );
  });
}

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

describe("connections", () => {
  test("are used again, and one that the server closed meanwhile is replaced without a word", async () => {
    const server = await listen((socket, count) => {
      let requests = 0;
      socket.on("data", () => {
        requests++;
        if (count === 1 && requests === 3) socket.destroy();
        else socket.write(OK);
      });
    });
    for (let i = 0; i < 5; i++)
      expect(await ask(`http://127.0.0.1:${server.port}/`)).toMatchObject({ status: 200, text: "ok" });
    expect(server.connections()).toBe(2);
  });

  test("are not used again after `connection: close`", async () => {
    const server = await listen((socket) =>
      socket.on("data", () => socket.end(OK.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"))),
    );
    for (let i = 0; i < 3; i++) expect((await ask(`http://127.0.0.1:${server.port}/`)).text).toBe("ok");
    expect(server.connections()).toBe(3);
  });

  test("try the next address of a name", async () => {
    const server = await listen((socket) => socket.on("data", () => socket.write(OK)));
    expect((await ask(`http://two.example:${server.port}/`)).text).toBe("ok");
  });

  test("2,000 requests are in flight at once", async () => {
    const waiting: Socket[] = [];
    const server = await listen((socket) => {
      socket.on("data", () => {
        waiting.push(socket);
        if (waiting.length === 2000) for (const each of waiting) each.write(OK);
      });
    });
    const answers = await Promise.all(
      Array.from({ length: 2000 }, () => ask(`http://127.0.0.1:${server.port}/`)),
    );
    expect(answers.filter((answer) => answer.text === "ok")).toHaveLength(2000);
  }, 30_000);
});

describe("failures have their own kinds", () => {
  test("nobody listens, no such name, a refused address", async () => {
    const server = net.createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    expect((await ask(`http://127.0.0.1:${port}/`)).error).toBe("connect");
    expect((await ask(`http://nowhere.example/`)).error).toBe("connect");
    for (const host of ["metadata.example", "rebound.example", "169.254.169.254"]) {
      expect((await ask(`http://${host}/`)).error).toBe("policy");
    }
  });

  test("no answer, half an answer, a lying length", async () => {
    const silent = await listen(() => {});
    expect((await ask(`http://127.0.0.1:${silent.port}/`, { timeouts: [5000, 60, 5000] })).error).toBe(
      "first-byte-timeout",
    );
    const stalls = await listen((socket) =>
      socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")),
    );
    expect(await ask(`http://127.0.0.1:${stalls.port}/`, { timeouts: [5000, 5000, 60] })).toEqual({
      status: 200,
      text: "half",
      error: "idle-timeout",
    });
    const lies = await listen((socket) =>
      socket.on("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")),
    );
    expect((await ask(`http://127.0.0.1:${lies.port}/`)).error).toBe("closed");
    const drops = await listen((socket) => socket.on("data", () => socket.destroy()));
    expect((await ask(`http://127.0.0.1:${drops.port}/`)).error).toBe("closed");
  });

  test("a stream that keeps coming is not cut by the idle timeout", async () => {
    const server = await listen((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        let n = 0;
        const timer = setInterval(() => {
          socket.write("1\r\nx\r\n");
          if (++n < 8) return;
          clearInterval(timer);
          socket.write("0\r\n\r\n");
        }, 30);
      });
    });
    expect((await ask(`http://127.0.0.1:${server.port}/`, { timeouts: [5000, 5000, 120] })).text).toBe(
      "xxxxxxxx",
    );
  });

  test("aborting closes the connection, before and after the first byte", async () => {
    const closed: Promise<void>[] = [];
    const arrived: (() => void)[] = [];
    const server = await listen((socket) => {
      closed.push(new Promise((resolve) => socket.once("close", () => resolve())));
      socket.on("data", () => arrived.shift()?.());
    });
    for (let round = 0; round < 2; round++) {
      const leave = new AbortController();
      const there = new Promise<void>((resolve) => arrived.push(resolve));
      const answer = ask(`http://127.0.0.1:${server.port}/`, { signal: leave.signal });
      await there;
      leave.abort();
      expect((await answer).error).toBe("aborted");
      await closed[round];
    }
    expect((await ask(`http://127.0.0.1:${server.port}/`, { signal: AbortSignal.abort() })).error).toBe(
      "aborted",
    );
  });
});

test("a paused answer holds the server back", async () => {
  let sent = 0;
  const total = 64 << 20;
  const server = await listen((socket) => {
    socket.once("data", () => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`);
      const go = () => {
        while (sent < total) {
          sent += 65_536;
          if (!socket.write(Buffer.alloc(65_536))) return void socket.once("drain", go);
        }
      };
      go();
    });
  });
  let got = 0;
  await new Promise<void>((resolve, reject) => {
    const exchange = transport.request(
      {
        target: targetOf(`http://127.0.0.1:${server.port}/`),
        method: "GET",
        headers: [],
        body: null,
        timeouts: { connectMs: 1000, firstByteMs: 1000, idleMs: 1000 },
        signal: new AbortController().signal,
      },
      {
        head() {},
        data(chunk) {
          if (got === 0) {
            exchange.pause();
            setTimeout(() => {
              expect(sent).toBeLessThan(total);
              exchange.resume();
            }, 200);
          }
          got += chunk.length;
        },
        end: resolve,
        fail: reject,
      },
    );
  });
  expect(got).toBe(total);
});

test("a streamed body arrives whole, with back-pressure", async () => {
  let got = 0;
  const total = 32 << 20;
  const server = await listen((socket) => {
    let head = false;
    socket.on("data", (bytes) => {
      got += bytes.length;
      if (!head) {
        head = true;
        got -= bytes.indexOf("\r\n\r\n") + 4;
      }
      if (got === total) socket.write(OK);
    });
  });
  let made = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      made += 65_536;
      controller.enqueue(new Uint8Array(65_536));
      if (made === total) controller.close();
    },
  });
  const answer = new Promise<string>((resolve, reject) => {
    transport.request(
      {
        target: targetOf(`http://127.0.0.1:${server.port}/`),
        method: "POST",
        headers: [],
        body,
        bodyLength: total,
        timeouts: { connectMs: 1000, firstByteMs: 10_000, idleMs: 1000 },
        signal: new AbortController().signal,
      },
      { head() {}, data: (chunk) => resolve(chunk.toString()), end() {}, fail: reject },
    );
  });
  expect(await answer).toBe("ok");
});
