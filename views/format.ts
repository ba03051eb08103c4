/** Numbers, times and words as the Studio writes them. Times come in as integer milliseconds or ISO 8601. */

export type Time = number | string;

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

/** 1284 → "1,284". */
export const num = (n: number): string => whole.format(n);

/** A thing that can be counted, with its number: (1, "link") → "1 link"; irregular plurals are named. */
export const count = (n: number, one: string, many = `${one}s`): string =>
  `${num(n)} ${n === 1 ? one : many}`;

/** 3.14159 → "3.1 ms"; above ten without a fraction, above ten seconds in seconds. */
export function ms(n: number): string {
  if (n >= 10_000) return `${num(n / 1000)} s`;
  return `${n >= 10 ? num(n) : String(Math.round(n * 10) / 10)} ms`;
}

/** Bytes with a thin unit: 30,012,345 → "30 MB". */
export function bytes(n: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  let value = n;
  while (value >= 1000 && i < units.length - 1) {
    value /= 1000;
    i++;
  }
  return `${value < 10 && i > 0 ? value.toFixed(1) : num(value)} ${units[i]}`;
}

/** A share as percent, never rounded up to 100 while something is missing. */
export function percent(part: number, all: number): number {
  if (all <= 0) return 100;
  const share = (part / all) * 100;
  return part < all ? Math.min(99.9, Math.round(share * 10) / 10) : 100;
}

/** 1,180,400 → {value: "1.18", unit: "million"}; small numbers have no unit. */
export function large(n: number): { value: string; unit: string } {
  if (n >= 1_000_000) return { value: (n / 1_000_000).toFixed(2), unit: "million" };
  if (n >= 100_000) return { value: num(n / 1000), unit: "thousand" };
  return { value: num(n), unit: "" };
}

const dateOf = (time: Time): Date => new Date(time);

/** ISO 8601 in UTC, for `datetime` attributes. */
export const iso = (time: Time): string => {
  const date = dateOf(time);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
};

const dayMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const dayMonthYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const clockShort = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** "14 Nov", with the year when it is not this one. */
export function day(time: Time, now = Date.now()): string {
  const date = dateOf(time);
  return (date.getFullYear() === new Date(now).getFullYear() ? dayMonth : dayMonthYear).format(date);
}

/** "14 Nov 2026". */
export const dayYear = (time: Time): string => dayMonthYear.format(dateOf(time));

/** "14 Nov, 10:48". */
export const dayTime = (time: Time, now = Date.now()): string =>
  `${day(time, now)}, ${clockShort.format(dateOf(time))}`;

/** "14 Nov, 10:48:07". */
export const dayClock = (time: Time, now = Date.now()): string =>
  `${day(time, now)}, ${clock.format(dateOf(time))}`;

/** Relative up to a day, a date after. */
export function ago(time: Time, now = Date.now()): string {
  const then = dateOf(time).getTime();
  const seconds = Math.round((now - then) / 1000);
  if (seconds < 0) return day(time, now);
  if (seconds < 60) return "just now";
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return count(hours, "hour") + " ago";
  if (new Date(now - 86_400_000).toDateString() === new Date(then).toDateString()) return "yesterday";
  return day(time, now);
}

/** "in 3 days" up to a fortnight, else a date; "expired" when it is past. */
export function until(time: Time, now = Date.now()): string {
  const days = Math.ceil((dateOf(time).getTime() - now) / 86_400_000);
  if (days < 0) return `${dayYear(time)}, expired`;
  if (days === 0) return "today";
  return days <= 14 ? `in ${count(days, "day")}` : dayYear(time);
}

/** The first `length` characters, whole code points, with an ellipsis where something is missing. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const end = text.codePointAt(length - 1)! > 0xffff ? length - 1 : length;
  return `${text.slice(0, end).trimEnd()}…`;
}

/** Like `cut`, with wide letters (Han, kana, hangul) counted twice: about the same room, and the same bytes, for every script. */
export function cutWide(text: string, width: number): string {
  let room = width;
  let end = 0;
  for (const letter of text) {
    room -= letter.codePointAt(0)! > 0x2e7f ? 2 : 1;
    if (room < 0) return `${text.slice(0, end).trimEnd()}…`;
    end += letter.length;
  }
  return text;
}

/** The language tag of a text whose script allows only one guess; undefined where it does not. */
export function langOf(text: string): string | undefined {
  if (!/[^\u0000-\u036f]/u.test(text)) return undefined;
  if (/[\p{Script=Hiragana}\p{Script=Katakana}]/u.test(text)) return "ja";
  if (/\p{Script=Hangul}/u.test(text)) return "ko";
  if (/\p{Script=Han}/u.test(text)) return "zh";
  if (/\p{Script=Thai}/u.test(text)) return "th";
  if (/\p{Script=Hebrew}/u.test(text)) return "he";
  if (/\p{Script=Arabic}/u.test(text)) return "ar";
  if (/\p{Script=Greek}/u.test(text)) return "el";
  return undefined;
}

/** A path or query with the given values added, replaced (or taken away, when empty). */
export function href(path: string, query: Record<string, string | number | null | undefined> = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

/** The page of one memory. */
export const memoryHref = (id: string, verb = ""): string =>
  `/dashboard/memory/${encodeURIComponent(id)}${verb ? `/${verb}` : ""}`;
