/** The engine's thread as such. It is started before there is anything to open: meanwhile it loads its code. */
import { threadAddress } from "../threads.ts";

export type Thread = {
  worker: Worker;
  /** Resolves with the reason when it has ended by itself. */
  lost: Promise<string>;
};

/** Starts a thread that opens nothing before it is told to. */
export function startThread(): Thread {
  const worker = new Worker(threadAddress("worker/main.ts"));
  const { promise: lost, resolve } = Promise.withResolvers<string>();
  worker.onerror = (event) => {
    event.preventDefault?.();
    worker.terminate();
    resolve(event.message);
  };
  worker.addEventListener("close", () => resolve("closed"));
  return { worker, lost };
}
