// The Studio's own script, beside htmx. Every page works without it. No inline handlers and no eval, so
// script-src 'self' is enough: one listener an event, and attributes say what an element does.

const one = (selector, from = document) => from.querySelector(selector);

/** Lets a screen reader say a sentence. The server asks for it with the header HX-Trigger: {"say":"Saved."}. */
const say = (text) => {
  const box = one("#announce");
  if (!box) return;
  box.textContent = "";
  setTimeout(() => {
    box.textContent = text;
  }, 60);
};
document.addEventListener("say", (event) => say(event.detail.value));

// An empty hx-get on a link means its href: said once, since a page has many of them.
document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
  if (ctx.request.action === "") ctx.request.action = ctx.sourceElement.getAttribute("href") ?? "";
});

/** data-copy="#id": copies that element's text, or selects it where the page is not in a secure context. */
const copy = async (button) => {
  const source = one(button.dataset.copy);
  if (!source) return;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.classList.add("is-done");
    setTimeout(() => button.classList.remove("is-done"), 1600);
    say("Copied.");
  } catch {
    getSelection().selectAllChildren(source);
    say("Selected. Press Ctrl C to copy.");
  }
};

/** A dialog sent as <dialog open> becomes modal; when it closes, focus goes back to what opened the first one. */
let opener;
document.addEventListener("htmx:before:swap", () => {
  const from = document.activeElement; // read before the swap, because htmx moves focus to [autofocus]
  if (from !== document.body && !from.closest("dialog")) opener = from;
});
const giveFocusBack = () => {
  (opener?.isConnected ? opener : one("h1"))?.focus();
};
const openDialog = (dialog) => {
  dialog.removeAttribute("open");
  dialog.showModal();
  dialog.addEventListener(
    "close",
    () => {
      dialog.remove();
      giveFocusBack();
    },
    { once: true },
  );
};

/** Toasts leave after 10 seconds, but not while someone points at them or is inside them. */
const dismiss = (toast) => {
  const inside = toast.contains(document.activeElement);
  toast.remove();
  if (inside) one("h1")?.focus();
};
const startTimer = (toast) => {
  toast.dataset.timed = "";
  const tick = setInterval(() => {
    if (!toast.isConnected) clearInterval(tick);
    else if (!toast.matches(":hover, :focus-within")) {
      clearInterval(tick);
      dismiss(toast);
    }
  }, 10_000);
};

const settle = () => {
  document.querySelectorAll("dialog[open]:not(:modal)").forEach(openDialog);
  const fresh = document.querySelectorAll(".toast:not([data-timed])");
  fresh.forEach(startTimer);
  // What had the focus is gone (an archived row, a closed dialog): offer the undo, else go back to the opener.
  if (document.activeElement === document.body && opener) {
    const undo = one(".toast:last-child [autofocus]");
    if (fresh.length > 0 && undo) undo.focus();
    else giveFocusBack();
  }
};
document.addEventListener("htmx:after:swap", settle);
document.addEventListener("DOMContentLoaded", settle);

document.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest(selector);
  if (at("[data-copy]")) void copy(at("[data-copy]"));
  if (at("[data-dismiss]")) dismiss(at(".toast"));
  const dialog = at("[data-close]") && at("dialog:modal");
  if (dialog) {
    event.preventDefault();
    dialog.close();
  }
});

// data-check-all on a box ticks the others of its panel; theirs decide how it looks.
document.addEventListener("change", (event) => {
  const panel = event.target.closest(".panel");
  const all = panel && one("[data-check-all]", panel);
  if (!all || event.target.type !== "checkbox") return;
  const boxes = [...panel.querySelectorAll("input[name=id]")];
  if (event.target === all) for (const box of boxes) box.checked = all.checked;
  const ticked = boxes.filter((box) => box.checked).length;
  all.checked = ticked > 0 && ticked === boxes.length;
  all.indeterminate = ticked > 0 && ticked < boxes.length;
});

// data-go on a select follows the choice by sending its form: real navigation, so nothing else is needed.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-go]")) event.target.form?.requestSubmit();
});

// Ctrl Enter sends the form from inside a text area.
document.addEventListener("keydown", (event) => {
  const sends = event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea");
  if (sends) event.target.form?.requestSubmit();
});

// No answer at all (the server is gone, or the network is): the page stays as it was and says so.
document.addEventListener("htmx:error", () => {
  const from = one("#no-answer");
  const toasts = one("#toasts");
  if (!from || !toasts || one(".toast[data-lost]")) return;
  toasts.append(from.content.cloneNode(true));
  settle();
});
