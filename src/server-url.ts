/** Addresses as people type them. */
import type { Config } from "./config.ts";

/** Base URL of this server as a browser on this machine reaches it. */
export function baseUrl(config: Config, port: number = config.PORT): string {
  const host = ["0.0.0.0", "::", ""].includes(config.HOST) ? "127.0.0.1" : config.HOST;
  const shown = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return `${config.TLS_CERT === null ? "http" : "https"}://${shown}:${port}`;
}
