/** The command line as a process of its own, from the sources, with nothing of this process' environment but PATH. */
import { join } from "node:path";

/** Runs `recollect ARGS` with its data folder under `dir`; resolves to what it printed and its exit code. */
export async function runCli(dir: string, args: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/main.ts"), ...args], {
    env: { PATH: process.env["PATH"] ?? "", HOME: dir, DATA_DIR: join(dir, "data"), ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code };
}
