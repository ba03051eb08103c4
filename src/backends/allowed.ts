/** The URL policy of providers for everything that a backend calls: checked when it is saved and again before each call. */
import { AppError } from "../error.ts";
import { createDial } from "../upstream/dial.ts";
import { hostOf, resolveBaseUrl } from "../upstream/policy.ts";
import { BackendError } from "./types.ts";

export type UrlCheck = (url: URL) => Promise<void>;

/** Why a URL as typed may not be used, in a few words, or null. What only DNS can tell is left to the check at the call. */
export function urlProblem(text: string): string | null {
  try {
    resolveBaseUrl(text);
    return null;
  } catch (thrown) {
    if (thrown instanceof AppError) return thrown.details[0]?.message ?? thrown.message;
    throw thrown;
  }
}

/** Rejects with a BackendError when the host resolves to an address that is not to be called. */
export function createUrlCheck(): UrlCheck {
  const dial = createDial();
  return async (url) => {
    try {
      await dial(hostOf(url.href));
    } catch (cause) {
      throw new BackendError(
        cause instanceof Error ? cause.message.replace("The provider's", "The") : "The host was not found.",
        {
          cause,
        },
      );
    }
  };
}
