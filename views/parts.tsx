/** Small pieces that every page is made of. Props only, no data access. */
import type { Child, PropsWithChildren } from "hono/jsx";
import { iso, langOf, type Time } from "./format.ts";
import { Icon } from "./icons.tsx";

/** Characters a reader cannot see or that reorder text: shown, so that nothing hides from a reviewer. */
// eslint-disable-next-line no-misleading-character-class -- each is matched alone
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Text somebody else wrote: escaped like all output, with hidden characters made visible. */
export const Text = ({ text }: { text: string }) => {
  if (text.search(HIDDEN) < 0) return <>{text}</>;
  const parts: Child[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const code = match[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    parts.push(
      text.slice(from, match.index),
      <span class="hidden-char" title={`Hidden character U+${code}`}>{`U+${code}`}</span>,
    );
    from = match.index + match[0].length;
  }
  parts.push(text.slice(from));
  return <>{parts}</>;
};

/** A statement's paragraph attributes: direction from the text itself, language where the script tells it. */
export const voice = (text: string): { dir: "auto"; lang?: string } => {
  const lang = langOf(text);
  return lang ? { dir: "auto", lang } : { dir: "auto" };
};

export const When = ({ at, class: name, children }: PropsWithChildren<{ at: Time; class?: string }>) => (
  <time {...(name ? { class: name } : {})} datetime={iso(at)}>
    {children}
  </time>
);

export const Head = ({
  title,
  sub,
  wrap,
  children,
}: PropsWithChildren<{ title: Child; sub?: Child; wrap?: boolean }>) => (
  <header class={wrap ? "page-head page-head-wrap" : "page-head"}>
    <h1 tabindex={-1}>{title}</h1>
    {sub ? <p>{sub}</p> : null}
    {children ? <div class="actions">{children}</div> : null}
  </header>
);

export const Crumbs = ({ items }: { items: { text: string; href?: string; mono?: boolean }[] }) => (
  <nav class="crumbs" aria-label="Path">
    <ol>
      {items.map((item) =>
        item.href ? (
          <li>
            <a href={item.href}>{item.text}</a>
          </li>
        ) : (
          <li aria-current="page" class={item.mono ? "mono truncate" : "truncate"}>
            {item.text}
          </li>
        ),
      )}
    </ol>
  </nav>
);

export const Tabs = ({
  label,
  items,
  current,
  small,
}: {
  label: string;
  items: { id: string; text: string; href: string; count?: string | undefined }[];
  current: string;
  small?: boolean;
}) => (
  <nav class={small ? "tabs tabs-sm" : "tabs"} aria-label={label}>
    {items.map((item) => (
      <a href={item.href} {...(item.id === current ? { "aria-current": "page" } : {})}>
        {item.text}
        {item.count ? <span class="tab-count"> {item.count}</span> : null}
      </a>
    ))}
  </nav>
);

export const Section = ({
  id,
  title,
  sub,
  children,
}: PropsWithChildren<{ id: string; title: string; sub: Child }>) => (
  <section class="section" aria-labelledby={`${id}-h`} id={id}>
    <div class="section-head">
      <h2 id={`${id}-h`}>{title}</h2>
      <p>{sub}</p>
    </div>
    <div class="stack">{children}</div>
  </section>
);

export const Block = ({
  id,
  title,
  note,
  children,
}: PropsWithChildren<{ id: string; title: Child; note?: Child }>) => (
  <section aria-labelledby={id}>
    <div class="block-head">
      <h2 id={id}>{title}</h2>
      {note ? <p class="note">{note}</p> : null}
    </div>
    {children}
  </section>
);

export const Copy = ({ of, label }: { of: string; label?: string }) => (
  <button
    class="btn btn-quiet btn-icon btn-sm"
    type="button"
    data-copy={`#${of}`}
    aria-label={label ?? "Copy"}
  >
    <Icon name="copy" />
    <Icon name="check" />
  </button>
);

export const CopyLine = ({ id, text, label }: { id: string; text: string; label?: string }) => (
  <div class="copy-line">
    <code id={id}>{text}</code>
    <Copy of={id} {...(label ? { label } : {})} />
  </div>
);

export const Code = ({ id, head, children }: PropsWithChildren<{ id: string; head?: string }>) => (
  <figure class="code">
    {head ? (
      <figcaption class="code-head">
        {head}
        <Copy of={id} label={`Copy: ${head}`} />
      </figcaption>
    ) : (
      <Copy of={id} />
    )}
    <pre tabindex={0}>
      <code id={id}>{children}</code>
    </pre>
  </figure>
);

export const Disclosure = ({
  title,
  note,
  open,
  id,
  class: name,
  children,
}: PropsWithChildren<{ title: Child; note?: Child; open?: boolean; id?: string; class?: string }>) => (
  <details
    class={name ? `disclosure ${name}` : "disclosure"}
    {...(id ? { id } : {})}
    {...(open ? { open: true } : {})}
  >
    <summary>
      <Icon name="right" />
      {title}
      {note ? <span class="note">{note}</span> : null}
    </summary>
    {children}
  </details>
);

export const Banner = ({
  kind,
  icon = "alert",
  id,
  more = {},
  children,
}: PropsWithChildren<{
  kind?: "accent" | "warn" | "bad";
  icon?: "alert" | "info" | "check" | null;
  id?: string;
  more?: Record<string, unknown>;
}>) => (
  <div class={kind ? `banner banner-${kind}` : "banner"} {...(id ? { id } : {})} {...more}>
    {icon ? <Icon name={icon} /> : null}
    {children}
  </div>
);

export const EmptyArt = ({ lost }: { lost?: boolean }) =>
  lost ? (
    <svg class="empty-art" viewBox="0 0 120 84" aria-hidden="true">
      <path
        d="M14 24a5 5 0 0 1 5-5h66a5 5 0 0 1 5 5v40a5 5 0 0 1-5 5H19a5 5 0 0 1-5-5z"
        stroke-dasharray="3 4"
      />
      <path d="M26 36h30M26 46h46" stroke-dasharray="1 5" />
      <path class="ink" d="M104 64a12 12 0 1 1 2.5-7.5" />
    </svg>
  ) : (
    <svg class="empty-art" viewBox="0 0 120 84" aria-hidden="true">
      <rect class="sheet" x="26" y="8" width="76" height="48" rx="5" />
      <rect class="sheet" x="20" y="16" width="76" height="48" rx="5" />
      <rect class="sheet" x="14" y="24" width="76" height="50" rx="5" />
      <rect class="marker" x="24" y="35.5" width="42" height="9" rx="1.5" />
      <path d="M26 40h36M26 50h50M26 60h26" />
      <path class="ink" d="M104 70a12 12 0 1 1 2.5-7.5" />
      <circle class="ink-fill" cx="94.5" cy="63" r="3.6" />
    </svg>
  );

export const Empty = ({
  title,
  level = 2,
  lost,
  actions,
  children,
}: PropsWithChildren<{ title: Child; level?: 1 | 2 | 3; lost?: boolean; actions?: Child }>) => (
  <div class="empty">
    <EmptyArt {...(lost ? { lost } : {})} />
    {level === 1 ? (
      <h1 id="err-h" tabindex={-1}>
        {title}
      </h1>
    ) : level === 2 ? (
      <h2>{title}</h2>
    ) : (
      <h3>{title}</h3>
    )}
    {children}
    {actions ? <div class="actions">{actions}</div> : null}
  </div>
);

/** "1–50 of 1,284" with links to what is older and newer. */
export const Pager = ({
  label,
  from,
  shown,
  total,
  to,
  bare,
  words = ["Newer", "Older"],
}: {
  label: string;
  from: number;
  shown: number;
  total: number;
  /** Address of the page before or after this one. */
  to: (by: -1 | 1) => string;
  bare?: boolean;
  words?: [string, string];
}) => (
  <nav class={bare ? "pager pager-bare" : "pager"} aria-label={label}>
    <span>
      {shown === 0 ? "0" : `${(from + 1).toLocaleString("en-GB")}–${(from + shown).toLocaleString("en-GB")}`}{" "}
      of {total.toLocaleString("en-GB")}
    </span>
    <span class="actions">
      {from > 0 ? (
        <a class="btn btn-sm" href={to(-1)} rel="prev">
          <Icon name="left" />
          {words[0]}
        </a>
      ) : null}
      {from + shown < total ? (
        <a class="btn btn-sm" href={to(1)} rel="next">
          {words[1]}
          <Icon name="right" />
        </a>
      ) : null}
    </span>
  </nav>
);
