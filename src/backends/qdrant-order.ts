/** Pages of an ordered scroll that fit together. */
import type { StoredPoint } from "../search/qdrant/client.ts";

/**
 * The server orders points of the same value anew in each answer; here they stand by their ids. Where place `end` cuts
 * such a group, its first points are asked for again: `byId(value, limit)` gives the points of that value in the order
 * of their ids. `points` is an ordered scroll from the beginning, one longer than `end` where there are as many.
 */
export async function settleTies(
  points: readonly StoredPoint[],
  end: number,
  byId: (value: number, limit: number) => Promise<StoredPoint[]>,
): Promise<StoredPoint[]> {
  const last = points[end - 1]?.order_value;
  const groups = Map.groupBy(points, (point) => point.order_value);
  if (typeof last === "number" && points[end]?.order_value === last) {
    const before = points.filter((point) => point.order_value !== last).length;
    groups.set(last, await byId(last, end - before));
  }
  return [...groups.values()].flatMap((group) =>
    group.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1)),
  );
}
