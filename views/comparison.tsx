/** The answers to one question with what was injected, and without it. */
import { count, cut, ms } from "./format.ts";
import { Text, voice } from "./parts.tsx";

/** The answer to one question with what was injected, and without it. */
export interface Comparison {
  model: string;
  withMemory: { text: string; tokens: number; ms: number; error?: string | undefined };
  without: { text: string; tokens: number; ms: number; error?: string | undefined };
}

const Side = ({ title, side }: { title: string; side: Comparison["withMemory"] }) => (
  <div class="compare-side">
    <h3>{title}</h3>
    {side.error ? (
      <p class="bad">{side.error}</p>
    ) : (
      <p class="said" {...voice(side.text)}>
        {side.text ? <Text text={cut(side.text, 4000)} /> : <em class="faint">an empty reply</em>}
      </p>
    )}
    <p class="note num">
      {count(side.tokens, "prompt token")}, {ms(side.ms)}
    </p>
  </div>
);

export const ComparisonView = ({ comparison }: { comparison: Comparison }) => (
  <section class="panel" id="comparison" aria-labelledby="cmp-h">
    <div class="panel-head">
      <h2 id="cmp-h" tabindex={-1}>
        Sent again, side by side
      </h2>
      <span class="note mono">{comparison.model}</span>
    </div>
    <div class="compare">
      <Side title="With memory" side={comparison.withMemory} />
      <Side title="Without memory" side={comparison.without} />
    </div>
  </section>
);
