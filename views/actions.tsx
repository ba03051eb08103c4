/** What acts: forms of one button, dialogs, toasts, parts of an answer that go elsewhere. */
import type { Child, PropsWithChildren } from "hono/jsx";
import { Icon } from "./icons.tsx";

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
