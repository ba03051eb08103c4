/** One line an event: JSON, or readable on a terminal. Ids and counts only; redaction is done here, not by callers. */

export type Level = "debug" | "info" | "warn" | "error";
export type Fields = Record<string, unknown>;
export type Log = {
  debug(event: string, fields?: Fields): void;
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
};

const order: Record<Level | "silent", number> = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 };

/** Names whose values are never written, and shapes of secrets inside other values. */
const secretName = /authorization|api-?key|token$|secret|password|cookie/i;
const secretShapes =
  /\b(?:rk|sk|pk|hf|ghp|gho|xox[abps])[-_][A-Za-z0-9_-]{8,}|Bearer\s+\S+|(?<=[?&](?:key|token|api_key)=)[^&\s"]+/g;

/** `write` gets one line without the line break. */
export function createLog(options: {
  level: Level | "silent";
  terminal: boolean;
  write: (line: string) => void;
}): Log {
  const emit =
    (level: Level) =>
    (event: string, fields: Fields = {}) => {
      if (order[level] < order[options.level]) return;
      const clean = Object.fromEntries(
        Object.entries(fields).map(([name, value]) => [name, redact(name, value)]),
      );
      const time = new Date().toISOString();
      if (!options.terminal) {
        options.write(JSON.stringify({ time, level, event, ...clean }));
        return;
      }
      const rest = Object.entries(clean)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
      options.write(
        `${time.slice(11, 19)} ${level === "info" ? "" : `${level} `}${event} ${rest.join(" ")}`.trimEnd(),
      );
    };
  return { debug: emit("debug"), info: emit("info"), warn: emit("warn"), error: emit("error") };
}

/** A log that writes nothing. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

function redact(name: string, value: unknown): unknown {
  if (typeof value === "number" || typeof value === "boolean" || value == null) return value;
  if (secretName.test(name)) return "[redacted]";
  if (value instanceof Error) return redact("", value.stack ?? value.message);
  if (typeof value === "string") return value.replace(secretShapes, "[redacted]");
  return JSON.parse(JSON.stringify(value).replace(secretShapes, "[redacted]")) as unknown;
}
