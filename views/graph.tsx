/** One entity and its nearest neighbours, as SVG: pills, arrows from border to border, at most eight neighbours. */
import { cut } from "./format.ts";

export interface GraphNode {
  id: number;
  name: string;
}
export interface GraphEdge {
  from: GraphNode;
  to: GraphNode;
  label: string;
}

interface Pill extends GraphNode {
  text: string;
  x: number;
  y: number;
  width: number;
}

const WIDTH = 360;
const HEIGHT = 290;
const PILL = 28;
const MOST = 8;

/** Wide scripts take about twice the room of Latin letters at 12 px. */
function widthOf(text: string): number {
  let width = 0;
  for (const letter of text) width += (letter.codePointAt(0) ?? 0) > 0x2e7f ? 12.5 : 6.9;
  return Math.round(Math.min(132, Math.max(44, width + 26)));
}

/** Where the line from pill `a` to pill `b` leaves the border of `a`, `gap` px outside. */
function border(a: Pill, b: Pill, gap: number): [number, number] {
  const dx = b.x - a.x;
  const dy = b.y - a.y;
  const k = Math.min((a.width / 2 + gap) / Math.abs(dx || 1e-9), (PILL / 2 + gap) / Math.abs(dy || 1e-9));
  return [Math.round((a.x + dx * k) * 10) / 10, Math.round((a.y + dy * k) * 10) / 10];
}

/** The main pill in the middle, the others on an ellipse around it, kept inside the frame. */
export function layout(main: GraphNode, edges: readonly GraphEdge[]): { pills: Pill[]; edges: GraphEdge[] } {
  const neighbours = new Map<number, GraphNode>();
  for (const edge of edges) {
    for (const node of [edge.from, edge.to]) {
      if (node.id !== main.id && neighbours.size < MOST) neighbours.set(node.id, node);
    }
  }
  const pill = (node: GraphNode, x: number, y: number): Pill => {
    const text = cut(node.name.replaceAll(/\s+/g, " "), 16);
    const width = widthOf(text);
    const inside = (value: number, half: number, most: number) =>
      Math.round(Math.min(most - half - 2, Math.max(half + 2, value)));
    return { ...node, text, x: inside(x, width / 2, WIDTH), y: inside(y, PILL / 2, HEIGHT), width };
  };
  const around = [...neighbours.values()].map((node, i, all) => {
    const angle = (i / all.length) * 2 * Math.PI - Math.PI / 2;
    return pill(node, WIDTH / 2 + Math.cos(angle) * 128, HEIGHT / 2 + Math.sin(angle) * 114);
  });
  const shown = new Set([main.id, ...neighbours.keys()]);
  return {
    pills: [pill(main, WIDTH / 2, HEIGHT / 2), ...around],
    edges: edges.filter(
      (edge) => edge.from.id !== edge.to.id && shown.has(edge.from.id) && shown.has(edge.to.id),
    ),
  };
}

export const RelationGraph = ({
  main,
  edges: all,
  hrefOf,
}: {
  main: GraphNode;
  edges: readonly GraphEdge[];
  hrefOf: (id: number) => string;
}) => {
  const { pills, edges } = layout(main, all);
  const byId = new Map(pills.map((pill) => [pill.id, pill]));
  const hidden = new Set(all.flatMap((edge) => [edge.from.id, edge.to.id])).size - pills.length;
  // Two links between the same pair would lie on each other: their labels share one line.
  const lines = new Map<string, { a: Pill; b: Pill; labels: string[] }>();
  for (const edge of edges) {
    const a = byId.get(edge.from.id)!;
    const b = byId.get(edge.to.id)!;
    const key = `${a.id}>${b.id}`;
    const line = lines.get(key) ?? { a, b, labels: [] };
    line.labels.push(edge.label);
    lines.set(key, line);
  }
  // Only as high as the pills need: one neighbour above leaves nothing below.
  const top = Math.min(...pills.map((pill) => pill.y)) - PILL;
  const bottom = Math.max(...pills.map((pill) => pill.y)) + PILL;
  return (
    <>
      <svg class="graph" viewBox={`0 ${top} ${WIDTH} ${bottom - top}`} role="group" aria-labelledby="graph-t">
        <title id="graph-t">{`${cut(main.name, 60)} and what it is linked to. The table below says the same.`}</title>
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto"
          >
            <path class="arrow" d="M0 .8 7 4 0 7.2z" />
          </marker>
        </defs>
        {[...lines.values()].map(({ a, b, labels }) => {
          const [x1, y1] = border(a, b, 0);
          const [x2, y2] = border(b, a, 2);
          return (
            <>
              <path class="edge" d={`M${x1} ${y1} ${x2} ${y2}`} marker-end="url(#arrow)" />
              <text
                class="edge-label"
                x={((x1 + x2) / 2).toFixed(1)}
                y={((y1 + y2) / 2 + 3 - (Math.abs(y1 - y2) < 6 ? 8 : 0)).toFixed(1)}
              >
                {cut(labels.join(", "), 22)}
              </text>
            </>
          );
        })}
        {pills.map((pill) => (
          <a href={hrefOf(pill.id)} aria-label={cut(pill.name, 80)}>
            <g class={pill.id === main.id ? "node node-main" : "node"}>
              <rect
                x={String(pill.x - pill.width / 2)}
                y={String(pill.y - PILL / 2)}
                width={String(pill.width)}
                height={String(PILL)}
                rx="14"
              />
              <text x={String(pill.x)} y={String(pill.y)}>
                {pill.text}
              </text>
            </g>
          </a>
        ))}
      </svg>
      {hidden > 0 ? <p class="note center">{hidden} more in the table.</p> : null}
    </>
  );
};
