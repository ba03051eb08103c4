import type { Lang } from "../../text/language.ts";
import { english } from "./en.ts";
import type { Language } from "./shape.ts";

/** Every language file by its code. */
export const languages: Readonly<Record<Lang, Language>> = {
  en: english,
  de: english,
  fr: english,
  es: english,
  pt: english,
  it: english,
  nl: english,
  fi: english,
  zh: english,
  ja: english,
};
