/** How good what was learned is: restatements, rejections, deletions, and echoes of what was recalled. */
import { num } from "./format.ts";
import { Word } from "./figures.tsx";

export interface Quality {
  extracted: number;
  duplicates: number;
  rejected: number;
  deletedByUser: number;
  loops: number;
}

const rows: [name: keyof Quality, label: string, note: string][] = [
  ["extracted", "Learned", "statements that became memories"],
  ["duplicates", "Said again", "updated a memory instead of adding one"],
  ["rejected", "Rejected", "in the review inbox"],
  ["deletedByUser", "Deleted by hand", "of what was learned"],
  ["loops", "Echoes", "of what was recalled in the same exchange; must stay at 0"],
];

export const QualityTable = ({ week, ever }: { week: Quality; ever: Quality }) => (
  <div class="table-wrap">
    <table class="table">
      <thead>
        <tr>
          <th>What</th>
          <th class="num">Last 7 days</th>
          <th class="num">Ever</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, label, note]) => (
          <tr>
            <td>
              <b class="table-title">{label}</b>
              <span class="table-sub">{note}</span>
            </td>
            <td class="num">
              {name === "loops" && week[name] > 0 ? (
                <Word state="bad">{num(week[name])}</Word>
              ) : (
                num(week[name])
              )}
            </td>
            <td class="num">{num(ever[name])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
