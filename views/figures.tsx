/** Figures and states: bars, ledgers, dots. Never by colour alone. */
import type { Child, PropsWithChildren } from "hono/jsx";

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
