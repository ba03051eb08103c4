/** Seals secrets at rest with AES-256-GCM under DATA_DIR/secret.key, which only the owner of the folder can read. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "./error.ts";

export type Seal = {
  /** nonce (12 bytes), tag (16 bytes), cipher text. */
  seal(text: string): Uint8Array;
  /** The text, or null when it was sealed under another key (a restored backup without its secret.key). */
  open(sealed: Uint8Array): string | null;
};

/** Reads the key of a data folder, making it on first use (mode 0600). */
export function openSeal(dataDir: string): Seal {
  const path = join(dataDir, "secret.key");
  if (!existsSync(path)) {
    const temporary = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
    writeFileSync(temporary, randomBytes(32), { mode: 0o600, flush: true });
    try {
      // A link never replaces: of two processes that start together, one key wins for both.
      linkSync(temporary, path);
    } catch (error) {
      if (!existsSync(path)) throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
  }
  const key = readFileSync(path);
  if (key.length !== 32) {
    throw new AppError(
      "unavailable",
      `${path} is damaged (32 bytes expected, ${key.length} found). Put the original back, or remove it and enter the providers' keys again.`,
    );
  }
  return {
    seal(text) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, nonce);
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]);
    },
    open(sealed) {
      const bytes = Buffer.from(sealed);
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12));
        decipher.setAuthTag(bytes.subarray(12, 28));
        return decipher.update(bytes.subarray(28), undefined, "utf8") + decipher.final("utf8");
      } catch {
        return null;
      }
    },
  };
}

/** A secret as it is shown: prefix and last four; shorter than 16 characters only dots. */
export function maskSecret(secret: string): string {
  return secret.length < 16 ? "••••" : `${secret.slice(0, 3)}…${secret.slice(-4)}`;
}

const SEALED = "sealed:";

/** A secret as text for a setting, and back: null when it was sealed under another key. What is not sealed stays. */
export function sealText(seal: Seal, text: string): string {
  return text.startsWith(SEALED) ? text : SEALED + Buffer.from(seal.seal(text)).toString("base64");
}

export function openText(seal: Seal, stored: string): string | null {
  if (!stored.startsWith(SEALED)) return stored;
  return seal.open(Buffer.from(stored.slice(SEALED.length), "base64"));
}
