/** After deleting for good: what was searched, and how much of it was found. */
import type { Child } from "hono/jsx";
import { Ledger, Word } from "./figures.tsx";
import { num } from "./format.ts";
import { type Chrome, Page } from "./layout.tsx";
import { Crumbs } from "./parts.tsx";

export interface Proof {
  row: number;
  history: number;
  fts: number;
  vectors: number;
  receipts: number;
  blocks: number;
  episodes: number;
  qdrant: "confirmed" | "pending" | "off";
}

/** After deleting for good: what was searched, and how much of it was found. */
export const ProofPage = ({ chrome, proof }: { chrome: Chrome; proof: Proof }) => {
  const counted: [string, number][] = [
    ["Its row", proof.row],
    ["Its history", proof.history],
    ["Word index", proof.fts],
    ["Vectors", proof.vectors],
    ["Copies in receipts", proof.receipts],
    ["Blocks that were injected", proof.blocks],
    ["Exchanges that may recall it", proof.episodes],
  ];
  const clean = counted.every(([, n]) => n === 0);
  return (
    <Page title="Deleted for good" current="memories" chrome={chrome}>
      <Crumbs items={[{ text: "Memories", href: "/dashboard/memory" }, { text: "Deleted for good" }]} />
      <header class="page-head">
        <h1 tabindex={-1}>Deleted for good</h1>
        <p>
          {clean
            ? "Everything was searched afterwards. Nothing of it is left."
            : "Something was still found afterwards. It is being removed; look again in a moment."}
        </p>
      </header>
      <div>
        <div class="panel panel-pad narrow">
          <Ledger
            rows={[
              ...counted.map(([name, n]): [string, Child] => [
                name,
                <Word state={n === 0 ? "ok" : "warn"}>{n === 0 ? "nothing found" : `${num(n)} found`}</Word>,
              ]),
              [
                "Qdrant",
                proof.qdrant === "off" ? (
                  <Word state="off">not used</Word>
                ) : proof.qdrant === "confirmed" ? (
                  <Word state="ok">confirmed gone</Word>
                ) : (
                  <Word state="busy">waits for Qdrant to answer</Word>
                ),
              ],
            ]}
          />
        </div>
      </div>
      <div class="form-foot below">
        <a class="btn btn-primary" href="/dashboard/memory">
          All memories
        </a>
      </div>
    </Page>
  );
};
