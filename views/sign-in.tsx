/** Sign-in with the management token; the one-time link ends here when it is used up or old. */
import type { AssetUrls } from "../src/assets.ts";
import { BrandMark, Icon } from "./icons.tsx";
import { BarePage, type Theme } from "./layout.tsx";
import { CopyLine } from "./parts.tsx";

export interface SignInProps {
  assets: AssetUrls;
  theme: Theme;
  version: string;
  host: string;
  /** Where to go afterwards. */
  next: string;
  error: string | null;
  note: string | null;
}

export const SignInPage = ({ assets, theme, version, host, next, error, note }: SignInProps) => (
  <BarePage title="Sign in" assets={assets} theme={theme}>
    <main class="gate" id="main">
      <svg class="gate-ring" viewBox="0 0 22 22" aria-hidden="true">
        <path d="M17.4 5.6A8.4 8.4 0 1 0 19.4 11" />
        <circle cx="11" cy="11" r="3.1" />
      </svg>
      <div class="gate-card">
        <span class="brand">
          <BrandMark />
          Recollect
        </span>
        <form class="panel stack" method="post" action="/sign-in">
          <h1>Sign in to the Studio</h1>
          {note ? (
            <p class="hint" role="status">
              {note}
            </p>
          ) : null}
          <input type="hidden" name="next" value={next} />
          <div class="field">
            <label for="token">Management token</label>
            <input
              class="input input-mono"
              id="token"
              name="token"
              type="password"
              autocomplete="current-password"
              required
              autofocus
              maxlength={300}
              aria-describedby={error ? "token-e" : "token-hint"}
              {...(error ? { "aria-invalid": "true" } : {})}
            />
            {error ? (
              <p class="field-error" id="token-e" role="alert">
                <Icon name="alert" />
                <span>{error}</span>
              </p>
            ) : null}
            <p class="hint" id="token-hint">
              It was printed when the server first started.
            </p>
          </div>
          <button class="btn btn-primary btn-lg btn-block">Sign in</button>
        </form>
        <div class="stack gate-help">
          <p class="hint">
            No token at hand? Run this on the machine. It prints a link that works once, for 30 minutes.
          </p>
          <CopyLine id="cmd-sign-in" text="recollect sign-in" label="Copy the command" />
        </div>
      </div>
      <p class="gate-foot">
        Recollect {version} on {host}
      </p>
    </main>
    <div class="visually-hidden" id="announce" role="status" aria-live="polite" />
  </BarePage>
);
