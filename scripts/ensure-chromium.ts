/** Prints the path of a Chromium for tests in a real browser; installs Debian's package when there is none and that is allowed. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const places = [
  process.env["CHROMIUM_PATH"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The first that is there, else null. */
export function findChromium(): string | null {
  return places.find((place) => place !== undefined && existsSync(place)) ?? null;
}

/** Installs the package with apt when this is Debian and the caller is root. */
export function ensureChromium(): string | null {
  const found = findChromium();
  if (found !== null || process.platform !== "linux" || process.getuid?.() !== 0) return found;
  if (!existsSync("/usr/bin/apt-get")) return null;
  const apt = (...args: string[]) =>
    spawnSync("apt-get", ["-qq", "-y", ...args], {
      stdio: "ignore",
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
  apt("update");
  apt("install", "--no-install-recommends", "chromium", "fonts-noto-core", "fonts-noto-cjk");
  return findChromium();
}

if (import.meta.main) {
  const path = ensureChromium();
  process.stdout.write(path === null ? "" : `${path}\n`);
  if (path === null) {
    process.stderr.write("There is no Chromium. Install it, or set CHROMIUM_PATH.\n");
    process.exit(1);
  }
}
