/** Values that were read when the server started. */
import { count, num } from "./format.ts";
import { Disclosure } from "./parts.tsx";

/** A value that is fixed while the server runs. */
export interface FixedValue {
  name: string;
  /** Hidden for secrets. */
  value: string;
  from: "flag" | "environment" | "stored" | "default";
  help: string;
}

const fixedWords: Record<FixedValue["from"], string> = {
  flag: "locked by a flag",
  environment: "locked by the environment",
  stored: "recollect config set",
  default: "default",
};

export const FixedValues = ({ values }: { values: readonly FixedValue[] }) => (
  <Disclosure title={count(values.length, "value")} note={`${num(values.filter(locked).length)} locked`}>
    <div
      class="disclosure-body scroll-list"
      tabindex={0}
      role="region"
      aria-label="Values fixed at the start"
    >
      <table class="table">
        <thead>
          <tr>
            <th>Name</th>
            <th>Value</th>
            <th class="hide-sm">From</th>
          </tr>
        </thead>
        <tbody>
          {values.map((value) => (
            <tr>
              <td>
                <code>{value.name}</code>
                <span class="table-sub">{value.help}</span>
              </td>
              <td>
                <code>{value.value || "–"}</code>
              </td>
              <td class="hide-sm">
                {locked(value) ? <span class="chip">{fixedWords[value.from]}</span> : fixedWords[value.from]}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </Disclosure>
);

const locked = (value: FixedValue): boolean => value.from === "flag" || value.from === "environment";
