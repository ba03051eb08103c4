/** Counters of write quality, by day. */
import type { Database } from "bun:sqlite";
import { DAY_MS, iso } from "./time.ts";

export const qualityNames = ["extracted", "duplicates", "rejected", "deletedByUser", "loops"] as const;
export type QualityName = (typeof qualityNames)[number];
export type Quality = Record<QualityName, number>;

export function countQuality(db: Database, name: QualityName, n: number, now: number): void {
  if (n === 0) return;
  db.query(
    "INSERT INTO quality (day, name, n) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
  ).run(iso(now).slice(0, 10), name, n);
}

/** Totals since the beginning and of the last seven days. */
export function readQuality(db: Database, now: number): Quality & { last7Days: Quality } {
  const since = iso(now - 6 * DAY_MS).slice(0, 10);
  const rows = db
    .query<{ name: QualityName; n: number; recent: number }, [string]>(
      "SELECT name, sum(n) AS n, sum(CASE WHEN day >= ? THEN n ELSE 0 END) AS recent FROM quality GROUP BY name",
    )
    .all(since);
  const empty = (): Quality => ({ extracted: 0, duplicates: 0, rejected: 0, deletedByUser: 0, loops: 0 });
  const result = { ...empty(), last7Days: empty() };
  for (const row of rows) {
    result[row.name] = row.n;
    result.last7Days[row.name] = row.recent;
  }
  return result;
}
