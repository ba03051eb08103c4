/** Days as forms know them. */

/** The end of a day, here; what is no day is left for the schema to refuse; empty is null. */
export function dayEnd(text: string | undefined): string | null {
  if (!text?.trim()) return null;
  const date = new Date(`${text.trim()}T23:59:59`);
  return Number.isNaN(date.getTime()) ? text : date.toISOString();
}
