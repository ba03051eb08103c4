import type { Lang } from "../../text/language.ts";
import { german } from "./de.ts";
import { english } from "./en.ts";
import { finnish } from "./fi.ts";
import { french } from "./fr.ts";
import { italian } from "./it.ts";
import { japanese } from "./ja.ts";
import { dutch } from "./nl.ts";
import { spanish } from "./es.ts";
import { portuguese } from "./pt.ts";
import { chinese } from "./zh.ts";
import type { Language } from "./shape.ts";

/** Every language file by its code. */
export const languages: Readonly<Record<Lang, Language>> = {
  en: english,
  de: german,
  fr: french,
  es: spanish,
  pt: portuguese,
  it: italian,
  nl: dutch,
  fi: finnish,
  zh: chinese,
  ja: japanese,
};
