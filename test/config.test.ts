import { expect, test } from "bun:test";
import { ConfigError, checkValue, isLoopback, resolveConfig } from "../src/config.ts";

test("a flag wins over the environment, that over a stored value, that over the default", () => {
  const stored = { PORT: "3", MEMORY_RRF_K: "7" };
  const config = resolveConfig({ flags: { PORT: "1" }, env: { PORT: "2", LOG_LEVEL: "warn" } }, stored);
  expect([config.PORT, config.sources.PORT]).toEqual([1, "flag"]);
  expect([config.LOG_LEVEL, config.sources.LOG_LEVEL]).toEqual(["warn", "environment"]);
  expect([config.MEMORY_RRF_K, config.sources.MEMORY_RRF_K]).toEqual([7, "stored"]);
  expect([config.HOST, config.sources.HOST]).toEqual(["127.0.0.1", "default"]);
});

test("every problem is listed at once, with name, what was found and what is allowed, but no secret", () => {
  const env = {
    PORT: "70000",
    LOG_LEVEL: "loud",
    REQUIRE_API_KEY: "perhaps",
    MEMORY_VEC_TOP_K: "0",
    RECOLLECT_MANAGEMENT_TOKEN: "short",
    TLS_CERT: "/cert.pem",
  };
  try {
    resolveConfig({ flags: {}, env }, {});
    expect.unreachable();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.problems).toHaveLength(6);
    expect(error.problems[0]).toBe('PORT is "70000"; allowed: a whole number from 0 to 65535.');
    expect(error.message).toContain("TLS_CERT and TLS_KEY");
    expect(error.message).not.toContain('"short"');
  }
});

test("an empty variable counts as not given", () => {
  expect(resolveConfig({ flags: {}, env: { PORT: "" } }, {}).PORT).toBe(20_128);
});

test("config set checks the name and the value", () => {
  expect(checkValue("PORT", "8080")).toBe("PORT");
  expect(() => checkValue("PORTS", "1")).toThrow(/no variable PORTS/);
  expect(() => checkValue("MEMORY_RRF_K", "-1")).toThrow(/0 to 10000/);
});

test.each(["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])("%s is loopback", (host) => {
  expect(isLoopback(host)).toBe(true);
});
test.each(["0.0.0.0", "::", "192.168.1.2", "127.0.0.1.example.com", "localhost.example.com"])(
  "%s is not",
  (host) => {
    expect(isLoopback(host)).toBe(false);
  },
);
