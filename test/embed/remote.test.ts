import { afterEach, describe, expect, test } from "bun:test";
import { openRemote, type RemoteOptions } from "../../src/embed/remote.ts";
import { EmbeddingError } from "../../src/embed/types.ts";
import { embedItem } from "../../src/embed/windows.ts";

type Asked = { path: string; authorization: string | null; input: string[]; model: string };
type Answer = (asked: Asked, request: Request) => Response | Promise<Response>;

let server: ReturnType<typeof Bun.serve> | undefined;
afterEach(async () => {
  await server?.stop(true);
  server = undefined;
});

/** A strict embedding server: it refuses what OpenAI's would refuse. */
function serve(answer: Answer) {
  const asked: Asked[] = [];
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = (await request.json()) as { model: string; input: string[]; encoding_format: string };
      const valid = Array.isArray(body.input) && body.input.length > 0 && body.input.length <= 2048;
      if (!valid || body.input.some((text) => text === "") || body.encoding_format !== "float") {
        return Response.json({ error: "bad" }, { status: 400 });
      }
      const one = {
        path: new URL(request.url).pathname,
        authorization: request.headers.get("authorization"),
        ...body,
      };
      asked.push(one);
      return await answer(one, request);
    },
  });
  return { asked, url: `http://127.0.0.1:${server.port}` };
}

const vectorOf = (text: string) => [text.length, 1, 0];
const good: Answer = ({ input }) =>
  Response.json({ data: input.map((text, index) => ({ index, embedding: vectorOf(text) })).toReversed() });

const options = (url: string, more: Partial<RemoteOptions> = {}): RemoteOptions => ({
  baseUrl: `${url}/v1`,
  modelId: "e-3",
  model: "p/e-3",
  apiKey: "sk-secret",
  ...more,
});
const failure = async (run: Promise<unknown>): Promise<EmbeddingError> => {
  const error = await run.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(EmbeddingError);
  return error as EmbeddingError;
};

test("batches, keeps order, gives unit length and skips empty texts", async () => {
  const { asked, url } = serve(good);
  const embedder = await openRemote(options(url));
  expect(embedder.signature).toBe("remote:p/e-3:3");
  const texts = Array.from({ length: 150 }, (_, at) => (at === 5 ? "  " : "x".repeat(at + 1)));
  const vectors = await embedder.embed(texts);
  expect(asked.slice(1).map((one) => one.input.length)).toEqual([64, 64, 21]);
  expect(asked[0]).toMatchObject({ path: "/v1/embeddings", authorization: "Bearer sk-secret", model: "e-3" });
  expect(Array.from(vectors[5]!)).toEqual([0, 0, 0]);
  expect(vectors[9]![0]).toBeCloseTo(10 / Math.hypot(10, 1), 5);
  expect(vectors[9]![1]).toBeCloseTo(1 / Math.hypot(10, 1), 5);
});

test("appends /embeddings once, and sends no key where there is none", async () => {
  const { asked, url } = serve(good);
  for (const baseUrl of [`${url}/v1/embeddings`, `${url}/v1/embeddings/`, `${url}/v1/`]) {
    await openRemote(options(url, { baseUrl, apiKey: null }));
  }
  expect(new Set(asked.map((one) => one.path))).toEqual(new Set(["/v1/embeddings"]));
  expect(asked.every((one) => one.authorization === null)).toBe(true);
});

test("takes base64 whatever was asked for", async () => {
  const { url } = serve(({ input }) =>
    Response.json({
      data: input.map((text, index) => ({
        index,
        embedding: Buffer.from(Float32Array.from(vectorOf(text)).buffer).toString("base64"),
      })),
    }),
  );
  const embedder = await openRemote(options(url));
  expect(embedder.dimensions).toBe(3);
  expect((await embedder.embed(["abcd"]))[0]![0]).toBeCloseTo(4 / Math.hypot(4, 1), 5);
});

describe("an answer that cannot be used", () => {
  const json =
    (body: unknown): Answer =>
    () =>
      Response.json(body);
  const bad: [what: string, answer: Answer, sentence: RegExp, partDown: boolean][] = [
    ["401", () => new Response("key sk-secret is wrong", { status: 401 }), /refuses the key \(401\)\.$/, true],
    ["404", () => new Response("", { status: 404 }), /does not know this address or model \(404\)\.$/, true],
    ["429", () => new Response("", { status: 429 }), /asks to slow down \(429\)\.$/, true],
    ["500", () => new Response("stack trace", { status: 500 }), /failed \(500\)\.$/, true],
    ["400", () => new Response("", { status: 400 }), /refuses the request \(400\)\.$/, false],
    ["a redirect", () => Response.redirect("http://127.0.0.1:1/elsewhere", 307), /redirect, which is not followed \(307\)\.$/, true],
    ["no JSON", () => new Response("<html>"), /something other than JSON/, true],
    ["NaN in JSON", () => new Response('{"data":[{"embedding":[NaN]}]}'), /something other than JSON/, true],
    ["null for a number", json({ data: [{ embedding: [1, null] }] }), /an embedding that is none/, true],
    ["a number too large", json({ data: [{ embedding: [1, 1e300] }] }), /a number that is none/, true],
    ["NaN in base64", json({ data: [{ embedding: Buffer.from(Float32Array.of(Number.NaN).buffer).toString("base64") }] }), /a number that is none/, true],
    ["base64 cut off", json({ data: [{ embedding: "AAAAAAA=" }] }), /an embedding that is none/, true],
    ["an empty vector", json({ data: [{ embedding: [] }] }), /an embedding that is none/, true],
    ["no list", json({ error: "sk-secret" }), /without a list of embeddings/, true],
    ["too many", json({ data: [{ embedding: [1] }, { embedding: [1] }] }), /2 embeddings where 1 were asked for/, true],
  ]; // prettier-ignore
  for (const [what, answer, sentence, partDown] of bad) {
    test(what, async () => {
      const { url } = serve(answer);
      const error = await failure(openRemote(options(url)));
      expect(error.message).toMatch(sentence);
      expect(error.message).toStartWith(`The embedding endpoint 127.0.0.1:${server!.port}`);
      expect(error.message).not.toContain("secret");
      expect(error.partDown).toBe(partDown);
    });
  }

  test("none within the time", async () => {
    const { url } = serve(() => new Promise<Response>(() => undefined));
    const error = await failure(openRemote(options(url, { timeoutMs: 60 })));
    expect(error.message).toEndWith("did not answer within 0.06 s.");
    expect(error.partDown).toBe(true);
  });

  test("nobody listens", async () => {
    const { url } = serve(good);
    await server!.stop(true);
    const error = await failure(openRemote(options(url)));
    expect(error.message).toEndWith("could not be reached.");
    expect(error.partDown).toBe(true);
  });

  test("another dimension than before", async () => {
    let size = 3;
    const { url } = serve(({ input }) =>
      Response.json({ data: input.map(() => ({ embedding: Array(size).fill(1) })) }),
    );
    const embedder = await openRemote(options(url));
    size = 4;
    expect((await failure(embedder.embed(["a"]))).message).toBe(
      "The embedding endpoint gave 4 dimensions where it gave 3 before.",
    );
  });
});

test("a failing part is left alone for 30 s, longer when a 429 says so", async () => {
  let status = 200;
  let clock = 0;
  const headers = { "retry-after": "90" };
  const { asked, url } = serve((one, request) =>
    status === 200
      ? good(one, request)
      : new Response("", { status, headers: status === 429 ? headers : {} }),
  );
  const embedder = await openRemote(options(url, { now: () => clock }));
  for (const [code, pause] of [
    [503, 30_000],
    [429, 90_000],
  ] as const) {
    status = code;
    await failure(embedder.embed(["a"]));
    const before = asked.length;
    clock += pause - 1;
    const error = await failure(embedder.embed(["a"]));
    expect(error).toMatchObject({ partDown: true, retryAfterMs: 1 });
    expect(error.message).toContain(`(${code}). It is asked again later.`);
    expect(asked.length).toBe(before);
    clock += 1;
    status = 200;
    await embedder.embed(["a"]);
    expect(asked.length).toBe(before + 1);
  }
});

test("a caller that leaves is no failure of the endpoint", async () => {
  let hang = false;
  const { url } = serve((one, request) =>
    hang ? new Promise<Response>(() => undefined) : good(one, request),
  );
  const embedder = await openRemote(options(url));
  hang = true;
  const abort = new AbortController();
  const running = embedder.embed(["a"], abort.signal);
  abort.abort(new Error("gone"));
  expect(running).rejects.toThrow("gone");
  await running.catch(() => undefined);
  hang = false;
  expect(await embedder.embed(["a"])).toHaveLength(1);
});

test("one refused text does not cost the others their vectors, and long texts are tried shorter", async () => {
  const limit = 1500;
  const { url } = serve((one, request) => {
    if (one.input.some((text) => text.length > limit)) return new Response("", { status: 400 });
    return good(one, request);
  });
  const embedder = await openRemote(options(url));
  const vectors = await embedder.embed(["a", "bb", "c".repeat(5000), "dddd"]);
  expect(vectors.map((vector) => Math.round(vector[0]! / vector[1]!))).toEqual([1, 2, 1250, 4]);
  // What was learned: the next long text is cut in windows that fit.
  const item = await embedItem(embedder, "word ".repeat(1000));
  expect(item).toHaveLength(5);
});
