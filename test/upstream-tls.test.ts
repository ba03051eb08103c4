/** Certificates are checked against the name that was asked for, not the address that is dialled. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call } from "../src/upstream/answer.ts";
import { TransportError } from "../src/upstream/errors.ts";
import { targetOf } from "../src/upstream/target.ts";
import { createTransport } from "../src/upstream/transport.ts";

const openssl = Bun.which("openssl");
if (!openssl) process.stderr.write("skipped: no openssl to make a certificate with\n");
const dir = mkdtempSync(join(tmpdir(), "recollect-tls-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function certificate(): { cert: string; key: string } {
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const made = Bun.spawnSync([
    openssl!,
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=models.example -addext subjectAltName=DNS:models.example".split(
      " ",
    ),
    "-keyout",
    key,
    "-out",
    cert,
  ]);
  expect(made.exitCode).toBe(0);
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
}

describe.skipIf(!openssl)("TLS", () => {
  test("a trusted certificate of that name, no other", async () => {
    const { cert, key } = certificate();
    let connections = 0;
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: { cert, key },
      fetch: (request) => new Response(`${++connections} ${request.headers.get("host")}`),
    });
    const resolve = async () => ["127.0.0.1"];
    const ask = async (host: string, ca?: string) => {
      const transport = createTransport({ resolve, ...(ca ? { ca } : {}) });
      try {
        const answer = await call(transport, {
          target: targetOf(`https://${host}:${server.port}/v1/models`),
          method: "GET",
          headers: [],
          body: null,
          timeouts: { connectMs: 3000, firstByteMs: 3000, idleMs: 3000 },
          signal: new AbortController().signal,
        });
        return (await answer.read(1000)).bytes.toString();
      } catch (error) {
        return error instanceof TransportError ? error.kind : String(error);
      } finally {
        transport.close();
      }
    };
    expect(await ask("models.example", cert)).toBe(`1 models.example:${server.port}`);
    expect(await ask("other.example", cert)).toBe("connect");
    expect(await ask("models.example")).toBe("connect");
    expect(connections).toBe(1);
    await server.stop(true);
  });
});
