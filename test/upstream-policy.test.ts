import { describe, expect, test } from "bun:test";
import { AppError } from "../src/error.ts";
import { addressProblem, isPrivateHost, resolveBaseUrl } from "../src/upstream/policy.ts";

describe("base URLs", () => {
  test.each([
    ["http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"],
    ["http://127.0.0.1:11434/", "http://127.0.0.1:11434/v1"],
    ["http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"],
    ["http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1"],
    ["http://127.0.0.1:11434//v1//", "http://127.0.0.1:11434/v1"],
    ["http://127.0.0.1:11434/v1/chat/completions", "http://127.0.0.1:11434/v1"],
    ["https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"],
    ["https://open.bigmodel.cn/api/paas/v4", "https://open.bigmodel.cn/api/paas/v4"],
    [
      "https://generativelanguage.googleapis.com/v1beta/openai/",
      "https://generativelanguage.googleapis.com/v1beta/openai",
    ],
    ["https://openrouter.ai/api", "https://openrouter.ai/api/v1"],
    [" HTTP://LocalHost:8080 ", "http://localhost:8080/v1"],
    ["http://[::1]:8080", "http://[::1]:8080/v1"],
  ])("%s is %s", (given, resolved) => {
    expect(resolveBaseUrl(given)).toBe(resolved);
    expect(resolveBaseUrl(resolved)).toBe(resolved);
  });

  test.each([
    "",
    "no url",
    "ftp://127.0.0.1",
    "file:///etc/passwd",
    "http://user:pass@127.0.0.1/v1",
    "http://127.0.0.1/v1?key=x",
    "http://127.0.0.1/v1#x",
    "http://169.254.169.254/latest",
    "http://169.254.1.1",
    "http://[fe80::1]/v1",
    "http://0.0.0.0:80",
    "http://[::ffff:169.254.169.254]/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://metadata.google.internal/",
    "http://100.100.100.200/",
    "http://[fd00:ec2::254]/",
    "http://[::a9fe:a9fe]/",
    "http://[::]/",
  ])("%s is refused with the field named", (given) => {
    try {
      resolveBaseUrl(given);
      throw new Error("was taken");
    } catch (error) {
      expect(error).toBeInstanceOf(AppError);
      expect(error).toMatchObject({ code: "url_refused", status: 400, param: "baseUrl" });
    }
  });
});

test("loopback and LAN may be reached, and count as private", () => {
  for (const address of [
    "127.0.0.1",
    "::1",
    "10.0.0.5",
    "192.168.1.2",
    "172.16.3.4",
    "fd12::1",
    "100.64.0.1",
  ]) {
    expect(addressProblem(address)).toBeNull();
    expect(isPrivateHost(address)).toBe(true);
  }
  expect(addressProblem("8.8.8.8")).toBeNull();
  expect(isPrivateHost("8.8.8.8")).toBe(false);
  expect(isPrivateHost("api.openai.com")).toBe(false);
  expect(isPrivateHost("gpu-box")).toBe(true);
  expect(isPrivateHost("gpu.local")).toBe(true);
});
