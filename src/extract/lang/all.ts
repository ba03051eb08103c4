import type { Lang } from "../../text/language.ts";
import type { Language } from "./shape.ts";

/** Each is loaded when it is first heard: together they would be a tenth of every start. */
const load: Readonly<Record<Lang, () => Language>> = {
  en: () => require("./en.ts").english,
  de: () => require("./de.ts").german,
  fr: () => require("./fr.ts").french,
  es: () => require("./es.ts").spanish,
  pt: () => require("./pt.ts").portuguese,
  it: () => require("./it.ts").italian,
  nl: () => require("./nl.ts").dutch,
  fi: () => require("./fi.ts").finnish,
  zh: () => require("./zh.ts").chinese,
  ja: () => require("./ja.ts").japanese,
};
const loaded = new Map<Lang, Language>();

/** Every language there is a file of. */
export const langs = Object.keys(load) as readonly Lang[];

/** The file of a language. */
export function languageOf(lang: Lang): Language {
  let found = loaded.get(lang);
  if (found === undefined) loaded.set(lang, (found = load[lang]()));
  return found;
}
