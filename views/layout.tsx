/** The document and the shell around every page. */
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import type { AssetUrls } from "../src/assets.ts";
import { Toast } from "./actions.tsx";
import { Dot } from "./figures.tsx";
import { count } from "./format.ts";
import { BrandMark, Icon, type IconName, Sprite } from "./icons.tsx";

export type Theme = "auto" | "light" | "dark";
export type Place = "memories" | "playground" | "engine" | "activity" | "settings";

/** What the shell itself shows, the same on every page. */
export interface Chrome {
  assets: AssetUrls;
  version: string;
  theme: Theme;
  memoryOn: boolean;
  /** Memories that wait for review. */
  pending: number;
  /** Mean tokens added to a request that got any, or null before the first. */
  tokensARequest: number | null;
  toast?: Parameters<typeof Toast>[0] | undefined;
}

const DOCTYPE = raw("<!doctype html>");
const HTMX_CONFIG = '{"includeIndicatorCSS":false,"defaultSwap":"outerHTML"}';

const Document = ({
  title,
  assets,
  theme,
  children,
}: {
  title: string;
  assets: AssetUrls;
  theme: Theme;
  children?: Child;
}) => (
  <>
    {DOCTYPE}
    <html lang="en" {...(theme === "auto" ? {} : { "data-theme": theme })}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
        <meta name="color-scheme" content="light dark" />
        <meta name="htmx-config" content={HTMX_CONFIG} />
        <title>{`${title} · Recollect`}</title>
        <link rel="stylesheet" href={assets["studio.css"]} />
        <link rel="icon" href={assets["icon.svg"]} type="image/svg+xml" />
        <script src={assets["htmx.js"]} defer />
        <script src={assets["studio.js"]} defer />
      </head>
      <body>
        <Sprite />
        {children}
      </body>
    </html>
  </>
);

/** A page without the shell: sign-in. */
export const BarePage = (props: { title: string; assets: AssetUrls; theme: Theme; children?: Child }) => (
  <Document {...props} />
);

const places: [Place, string, string][] = [
  ["memories", "Memories", "/dashboard/memory"],
  ["playground", "Playground", "/dashboard/memory?tab=playground"],
  ["engine", "Engine", "/dashboard/memory?tab=engine"],
  ["activity", "Activity", "/dashboard/activity/receipts"],
  ["settings", "Settings", "/dashboard/settings"],
];

const themes: [Theme, IconName, string][] = [
  ["auto", "theme", "Same as the system"],
  ["light", "sun", "Light"],
  ["dark", "moon", "Dark"],
];

const AccountMenu = ({ theme }: { theme: Theme }) => (
  <div class="menu" id="account-menu" popover="auto">
    <form method="post" action="/dashboard/theme">
      <p class="menu-label">Theme</p>
      {themes.map(([value, icon, text]) => (
        <button name="theme" value={value} aria-pressed={value === theme ? "true" : "false"}>
          <Icon name={icon} />
          {text}
          {value === theme ? <Icon name="check" end /> : null}
        </button>
      ))}
    </form>
    <hr />
    <a href="/dashboard/connect">
      <Icon name="link" />
      Connect a client
    </a>
    <form method="post" action="/dashboard/sign-out">
      <button>
        <Icon name="logout" />
        Sign out
      </button>
    </form>
  </div>
);

/** The count beside Memories; it is swapped by itself when a review changes it. */
export const PendingCount = ({ pending }: { pending: number }) => (
  <span id="pending-count">
    {pending > 0 ? (
      <span class="nav-count" title={`${count(pending, "memory", "memories")} waiting for review`}>
        {pending > 99 ? "99+" : pending}
        <span class="visually-hidden"> waiting for review</span>
      </span>
    ) : null}
  </span>
);

const costWords = (chrome: Chrome): string => {
  if (!chrome.memoryOn) return "requests pass through unchanged";
  return chrome.tokensARequest === null
    ? "nothing added to a request yet"
    : `adds about ${count(Math.round(chrome.tokensARequest), "token")} to a request`;
};

/** The foot's state of memory, swapped when a setting changes it. */
export const MemoryState = ({ chrome }: { chrome: Chrome }) => (
  <a class="nav-status" id="nav-status" href="/dashboard/settings/memory">
    <Dot state={chrome.memoryOn ? "ok" : "off"} />
    <strong class="nav-label">Memory is {chrome.memoryOn ? "on" : "off"}</strong>
    <small class="nav-label">{costWords(chrome)}</small>
  </a>
);

export const MemoryChip = ({ on }: { on: boolean }) => (
  <a class={on ? "chip chip-ok" : "chip"} id="top-status" href="/dashboard/settings/memory">
    <Dot state={on ? "ok" : "off"} />
    Memory {on ? "on" : "off"}
  </a>
);

export interface PageProps {
  title: string;
  current: Place | null;
  chrome: Chrome;
  dialog?: Child;
  children?: Child;
}

/** The whole document of a page inside the shell. */
export const Page = ({ title, current, chrome, dialog, children }: PageProps) => (
  <Document title={title} assets={chrome.assets} theme={chrome.theme}>
    <a class="skip-link" href="#main">
      Skip to content
    </a>
    <div class="shell">
      <header class="topbar">
        <a class="brand" href="/dashboard/memory">
          <BrandMark />
          Recollect
        </a>
        <MemoryChip on={chrome.memoryOn} />
        <button
          class="btn btn-quiet btn-icon"
          type="button"
          popovertarget="account-menu"
          aria-label="Account and theme"
        >
          <Icon name="more" />
        </button>
      </header>
      <nav class="sidenav" aria-label="Studio">
        <a class="brand" href="/dashboard/memory">
          <BrandMark />
          <span class="nav-label">Recollect</span>
        </a>
        <ul class="nav-list">
          {places.map(([id, label, to]) => (
            <li>
              <a href={to} title={label} {...(id === current ? { "aria-current": "page" } : {})}>
                <Icon name={id} />
                <span class="nav-label">{label}</span>
                {id === "memories" ? <PendingCount pending={chrome.pending} /> : null}
              </a>
            </li>
          ))}
        </ul>
        <div class="nav-foot">
          <MemoryState chrome={chrome} />
          <div class="nav-account">
            <span class="nav-label">{chrome.version}</span>
            <button class="btn btn-quiet btn-sm" type="button" popovertarget="account-menu">
              <Icon name="theme" />
              <span class="nav-label">Theme and account</span>
            </button>
          </div>
        </div>
      </nav>
      <AccountMenu theme={chrome.theme} />
      <main class="main" id="main" tabindex={-1}>
        {children}
      </main>
    </div>
    <div class="visually-hidden" id="announce" role="status" aria-live="polite" />
    <div class="toasts" id="toasts" role="status" aria-live="polite">
      {chrome.toast ? <Toast {...chrome.toast} /> : null}
    </div>
    <div id="dialogs">{dialog}</div>
    <template id="no-answer">
      <div class="toast" data-lost>
        <p>No answer from the server. Nothing was changed.</p>
        <button class="btn btn-quiet btn-icon btn-sm" type="button" data-dismiss aria-label="Dismiss">
          <Icon name="x" />
        </button>
      </div>
    </template>
  </Document>
);
