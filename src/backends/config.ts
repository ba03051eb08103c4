/** Secrets of the setting `backendConfigs`, which are write-only. */
import { maskSecret, openText, sealText } from "../seal.ts";
import type { Seal } from "../seal.ts";

type Raw = Record<string, Record<string, unknown>>;

/** Applies `change` to every secret: `apiKey`, and the values of headers. */
function mapSecrets(configs: Raw, change: (id: string, name: string, value: string) => string): Raw {
  return Object.fromEntries(
    Object.entries(configs).map(([id, config]) => {
      const next = { ...config };
      if (typeof next["apiKey"] === "string") next["apiKey"] = change(id, "apiKey", next["apiKey"]);
      const { headers } = next;
      if (typeof headers === "object" && headers !== null)
        next["headers"] = Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [
            name,
            typeof value === "string" ? change(id, `headers.${name}`, value) : (value as unknown),
          ]),
        );
      return [id, next];
    }),
  );
}

const secretAt = (configs: Raw, id: string, name: string): string | null => {
  const config = configs[id];
  const value = name.startsWith("headers.")
    ? (config?.["headers"] as Record<string, unknown> | undefined)?.[name.slice(8)]
    : config?.[name];
  return typeof value === "string" ? value : null;
};

/** As faces show them: secrets as prefix and last four. */
export const maskBackends = (configs: Raw): Raw => mapSecrets(configs, (_, __, value) => maskSecret(value));

/**
 * What a form sends back as it was shown stays as it is stored, sealed: also what cannot be opened now, since the
 * secret.key it was sealed under may come back.
 */
export function keepSecrets(stored: Raw, sent: Raw, seal: Seal): Raw {
  return mapSecrets(sent, (id, name, value) => {
    const before = secretAt(stored, id, name);
    return before !== null && value === maskSecret(openText(seal, before) ?? "") ? before : value;
  });
}

/** For the database: every secret sealed, and opened again. What was sealed under another key is gone. */
export const sealBackends = (configs: Raw, seal: Seal): Raw =>
  mapSecrets(configs, (_, __, value) => sealText(seal, value));
export const openBackends = (configs: Raw, seal: Seal): Raw =>
  mapSecrets(configs, (_, __, value) => openText(seal, value) ?? "");
