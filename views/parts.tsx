/** Small pieces that every page is made of. Props only, no data access. */
import type { Child, PropsWithChildren } from "hono/jsx";
import { iso, langOf, type Time } from "./format.ts";
import { Icon } from "./icons.tsx";

export type State = "ok" | "warn" | "bad" | "off" | "busy";

/** A state's shape; the word beside it says the same. */
export const Dot = ({ state }: { state: State }) => <span class={`dot dot-${state}`} aria-hidden="true" />;

export const Word = ({ state, children }: PropsWithChildren<{ state: State }>) => (
  <span class={state === "bad" || state === "warn" ? `inline ${state}` : "inline"}>
    <Dot state={state} />
    {children}
  </span>
);

export const Chip = ({ kind, children }: PropsWithChildren<{ kind?: "ok" | "warn" | "bad" | "accent" }>) => (
  <span class={kind ? `chip chip-${kind}` : "chip"}>{children}</span>
);

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

export type LedgerRow = [label: Child, value: Child, kind?: "ledger-total"];

/** Labels joined to their values by dotted leaders, as on a receipt. */
export const Ledger = ({ rows }: { rows: (LedgerRow | null)[] }) => (
  <dl class="ledger">
    {rows
      .filter((row) => row !== null)
      .map(([label, value, kind]) => (
        <div {...(kind ? { class: kind } : {})}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
);

export type Fill = "hatch" | "fill-1" | "fill-2" | "fill-3" | "fill-4";
const fillOf = (fill: Fill) => (fill === "hatch" ? { fill: "url(#hatch)" } : { class: fill });

/** A bar from parts: [percent, fill]. Widths are SVG attributes, so there is no inline style. */
export const Bar = ({ parts, tall, label }: { parts: [number, Fill][]; tall?: boolean; label?: string }) => {
  let x = 0;
  const rects = parts.map(([width, fill]) => {
    const at = x;
    x += width;
    return <rect x={`${+at.toFixed(2)}%`} width={`${+width.toFixed(2)}%`} height="100%" {...fillOf(fill)} />;
  });
  const name = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return (
    <svg class={tall ? "bar bar-tall" : "bar"} width="100%" height={tall ? 8 : 6} {...name}>
      {rects}
    </svg>
  );
};

export const Swatch = ({ fill }: { fill: Fill }) => (
  <svg class="swatch" width="10" height="10" aria-hidden="true">
    <rect width="10" height="10" {...fillOf(fill)} />
  </svg>
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

/** A button that changes something is the submit of a form, so that it works without script. */
export const Post = ({
  action,
  target,
  swap,
  fields = {},
  children,
}: PropsWithChildren<{
  action: string;
  target?: string;
  swap?: string;
  fields?: Record<string, string>;
}>) => (
  <form
    class="contents"
    method="post"
    action={action}
    {...(target ? { "hx-post": action, "hx-target": target } : {})}
    {...(swap ? { "hx-swap": swap } : {})}
  >
    {Object.entries(fields).map(([name, value]) => (
      <input type="hidden" name={name} value={value} />
    ))}
    {children}
  </form>
);

/** A link whose answer is a dialog; without script it is the same page with the dialog open. An empty hx-get means href. */
export const DialogLink = ({
  to,
  class: name,
  label,
  children,
}: PropsWithChildren<{ to: string; class?: string; label?: string }>) => (
  <a
    href={to}
    hx-get=""
    hx-target="#dialogs"
    hx-swap="innerHTML"
    {...(name ? { class: name } : {})}
    {...(label ? { "aria-label": label } : {})}
  >
    {children}
  </a>
);

export const Dialog = ({
  id,
  title,
  small,
  close,
  form,
  foot,
  children,
}: PropsWithChildren<{
  id: string;
  title: string;
  small?: boolean;
  /** Where closing goes without script. */
  close: string;
  /** Address the form posts to, and further attributes of it. */
  form?: { action: string; multipart?: boolean; plain?: boolean };
  foot: Child;
}>) => {
  const inner = (
    <>
      <div class="dialog-head">
        <h2 id={`${id}-h`}>{title}</h2>
        <a class="btn btn-quiet btn-icon" href={close} aria-label="Close" data-close>
          <Icon name="x" />
        </a>
      </div>
      <div class="dialog-body">{children}</div>
      <div class="dialog-foot">{foot}</div>
    </>
  );
  const hx = form && !form.plain ? { "hx-post": form.action, "hx-target": "closest dialog" } : {};
  return (
    <dialog class={small ? "dialog dialog-sm" : "dialog"} id={id} open aria-labelledby={`${id}-h`}>
      {form ? (
        <form
          method="post"
          action={form.action}
          {...hx}
          {...(form.multipart ? { enctype: "multipart/form-data" } : {})}
          hx-disable="find .btn-primary"
        >
          {inner}
        </form>
      ) : (
        <div class="dialog-frame">{inner}</div>
      )}
    </dialog>
  );
};

export const Cancel = ({ to, children, focus }: PropsWithChildren<{ to: string; focus?: boolean }>) => (
  <a class="btn" href={to} data-close {...(focus ? { autofocus: true } : {})}>
    {children ?? "Cancel"}
  </a>
);

export const Submit = ({
  children,
  kind = "primary",
}: PropsWithChildren<{ kind?: "primary" | "danger" }>) => (
  <button class={`btn btn-${kind}`}>
    <span class="spinner" />
    {children}
  </button>
);

/** What the server found wrong, by field name; "" holds what belongs to no field. */
export type Errors = Readonly<Record<string, string>>;

export const fieldId = (form: string, name: string): string => `${form}-${name.replace(/[^\w-]/g, "-")}`;

/** The first field in trouble gets the focus, the others only say so. */
const invalid = (form: string, name: string, errors: Errors) =>
  errors[name]
    ? {
        "aria-invalid": "true",
        "aria-describedby": `${fieldId(form, name)}-e`,
        ...(Object.keys(errors)[0] === name ? { autofocus: true } : {}),
      }
    : {};

export const FieldError = ({ form, name, errors }: { form: string; name: string; errors: Errors }) =>
  errors[name] ? (
    <p class="field-error" id={`${fieldId(form, name)}-e`}>
      <Icon name="alert" />
      <span>{errors[name]}</span>
    </p>
  ) : null;

/** Shown when no single field can carry the message, or when there are two or more of them. */
export const FormErrors = ({
  form,
  errors,
  labels,
}: {
  form: string;
  errors: Errors;
  labels: Readonly<Record<string, string>>;
}) => {
  const names = Object.keys(errors);
  const known = names.filter((name) => labels[name]);
  if (names.length === 0 || (names.length === 1 && known.length === 1)) return null;
  return (
    <div class="form-errors" role="alert" tabindex={-1}>
      <h3>{names.length === 1 ? "This did not work" : `${names.length} fields need another look`}</h3>
      <ul>
        {names.map((name) => (
          <li>
            {labels[name] ? (
              <a href={`#${fieldId(form, name)}`}>{`${labels[name]}: ${errors[name]}`}</a>
            ) : (
              `${name ? `${name}: ` : ""}${errors[name]}`
            )}
          </li>
        ))}
      </ul>
    </div>
  );
};

interface ControlProps {
  form: string;
  name: string;
  errors?: Errors;
  /** Further attributes of the input itself. */
  more?: Record<string, unknown>;
}

export const Input = ({
  form,
  name,
  errors = {},
  value,
  kind = "",
  more = {},
}: ControlProps & { value?: string | number | null; kind?: "" | "mono" | "num" }) => (
  <input
    class={kind ? `input input-${kind}` : "input"}
    id={fieldId(form, name)}
    name={name}
    {...(value === null || value === undefined ? {} : { value: String(value) })}
    {...(kind === "num" ? { inputmode: "numeric" } : {})}
    {...more}
    {...invalid(form, name, errors)}
  />
);

export type Option = string | { value: string; text: string };

export const Select = ({
  form,
  name,
  errors = {},
  options,
  value,
  label,
  more = {},
}: ControlProps & { options: readonly Option[]; value?: string | null | undefined; label?: string }) => (
  <select
    class="select"
    id={fieldId(form, name)}
    name={name}
    {...(label ? { "aria-label": label } : {})}
    {...more}
    {...invalid(form, name, errors)}
  >
    {options.map((option) => {
      const { value: v, text } = typeof option === "string" ? { value: option, text: option } : option;
      return (
        <option value={v} {...(v === (value ?? "") ? { selected: true } : {})}>
          {text}
        </option>
      );
    })}
  </select>
);

export const Textarea = ({
  form,
  name,
  errors = {},
  value,
  rows = 3,
  more = {},
}: ControlProps & { value?: string | null; rows?: number }) => (
  <textarea
    class="textarea"
    id={fieldId(form, name)}
    name={name}
    rows={rows}
    {...more}
    {...invalid(form, name, errors)}
  >
    {/* A textarea swallows one line break at its start. */}
    {value?.startsWith("\n") ? `\n${value}` : (value ?? "")}
  </textarea>
);

/** A switch: `name=true` when on, nothing when off. */
export const Switch = ({
  form,
  name,
  on,
  label,
  more = {},
}: ControlProps & { on: boolean; label?: string }) => (
  <input
    class="switch"
    type="checkbox"
    role="switch"
    id={fieldId(form, name)}
    name={name}
    value="true"
    {...(on ? { checked: true } : {})}
    {...(label ? { "aria-label": label } : {})}
    {...more}
  />
);

export const Field = ({
  form,
  name,
  label,
  optional,
  hint,
  errors = {},
  wide,
  class: extra,
  children,
}: PropsWithChildren<{
  form: string;
  name: string;
  label: Child;
  optional?: Child;
  hint?: Child;
  errors?: Errors;
  wide?: boolean;
  class?: string;
}>) => (
  <div class={["field", wide ? "field-wide" : "", extra ?? ""].filter(Boolean).join(" ")}>
    <label for={fieldId(form, name)}>
      {label}
      {optional ? <span class="field-optional"> ({optional})</span> : null}
    </label>
    {children}
    {hint ? <p class="hint">{hint}</p> : null}
    <FieldError form={form} name={name} errors={errors} />
  </div>
);

/** One line of a settings form: what it is on the left, its control on the right. */
export const Row = ({
  form,
  name,
  label,
  hint,
  errors = {},
  children,
}: PropsWithChildren<{
  form: string;
  name: string;
  label: string;
  hint?: Child;
  errors?: Errors;
}>) => (
  <div class="row">
    <div class="row-text">
      <label class="label" for={fieldId(form, name)}>
        {label}
      </label>
      {hint ? <p class="hint">{hint}</p> : null}
      <FieldError form={form} name={name} errors={errors} />
    </div>
    <div class="row-control">{children}</div>
  </div>
);

/** For forms that save on change: the button they need when there is no script. */
export const SaveWithoutScript = () => (
  <noscript>
    <p class="row-foot">
      <button class="btn btn-primary">Save</button>
    </p>
  </noscript>
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
  newer,
  older,
  bare,
  words = ["Newer", "Older"],
}: {
  label: string;
  from: number;
  shown: number;
  total: number;
  newer: string | null;
  older: string | null;
  bare?: boolean;
  words?: [string, string];
}) => (
  <nav class={bare ? "pager pager-bare" : "pager"} aria-label={label}>
    <span>
      {shown === 0 ? "0" : `${(from + 1).toLocaleString("en-GB")}–${(from + shown).toLocaleString("en-GB")}`}{" "}
      of {total.toLocaleString("en-GB")}
    </span>
    <span class="actions">
      {newer ? (
        <a class="btn btn-sm" href={newer} rel="prev">
          <Icon name="left" />
          {words[0]}
        </a>
      ) : null}
      {older ? (
        <a class="btn btn-sm" href={older} rel="next">
          {words[1]}
          <Icon name="right" />
        </a>
      ) : null}
    </span>
  </nav>
);

/** A message that leaves by itself; `undo` is the address that takes the action back. */
export const Toast = ({
  text,
  undo,
  link,
}: {
  text: string;
  undo?: { action: string; fields?: Record<string, string> } | undefined;
  link?: { href: string; text: string } | undefined;
}) => (
  <div class="toast">
    <p>{text}</p>
    {link ? (
      <a class="btn btn-sm" href={link.href}>
        {link.text}
      </a>
    ) : null}
    {undo ? (
      <Post
        action={undo.action}
        target="closest .toast"
        swap="delete"
        {...(undo.fields ? { fields: undo.fields } : {})}
      >
        <button class="btn btn-sm" autofocus>
          <Icon name="undo" />
          Undo
        </button>
      </Post>
    ) : null}
    <button class="btn btn-quiet btn-icon btn-sm" type="button" data-dismiss aria-label="Dismiss">
      <Icon name="x" />
    </button>
  </div>
);

/** A part of an htmx answer that goes elsewhere than the rest of it. */
export const Partial = ({ target, swap, children }: PropsWithChildren<{ target: string; swap?: string }>) => (
  <hx-partial hx-target={target} {...(swap ? { "hx-swap": swap } : {})}>
    {children}
  </hx-partial>
);
