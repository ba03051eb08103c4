/**
 * What stands in a message and is not its writer's own word: fenced code, block quotes, `<…>` wrappers of coding
 * agents, our own `Memory context:` blocks, logs and pasted text. Masked with line ends, so that places stay.
 */
import type { Role } from "./types.ts";

type Range = readonly [start: number, end: number];

/** The text at its own length with everything that is not the writer's own word turned into line ends. Linear. */
export function maskForeign(text: string, role: Role): string {
  const ranges: Range[] = [];
  if (text.includes("<")) ranges.push(...tagged(text));
  ranges.push(...byLine(text));
  const own = blank(text, ranges);
  return role === "user" ? blank(own, pasted(own)) : own;
}

function blank(text: string, ranges: Range[]): string {
  if (ranges.length === 0) return text;
  ranges.sort((a, b) => a[0] - b[0]);
  const parts: string[] = [];
  let at = 0;
  for (const [start, end] of ranges) {
    if (end <= at) continue;
    const from = Math.max(start, at);
    parts.push(text.slice(at, from), "\n".repeat(end - from));
    at = end;
  }
  parts.push(text.slice(at));
  return parts.join("");
}

const TAG = /<(\/?)([\p{L}_][\p{L}\p{N}_.:-]{0,63})(?:\s[^<>]{0,1000})?(\/?)>/gu;
/** Tags in running text that wrap nothing foreign. */
const INLINE_TAG = /^(?:b|i|u|em|strong|br|p|span|kbd|sub|sup|small|mark|s|a|hr|img)$/i;

/** From each opening tag to its closing one, outermost first. */
function tagged(text: string): Range[] {
  const ranges: Range[] = [];
  const open = new Map<string, number[]>();
  for (const match of text.matchAll(TAG)) {
    const name = (match[2] ?? "").toLowerCase();
    if (match[3] === "/" || INLINE_TAG.test(name)) continue;
    const stack = open.get(name);
    if (match[1] === "") {
      if (stack === undefined) open.set(name, [match.index]);
      else stack.push(match.index);
    } else {
      const from = stack?.pop();
      if (from !== undefined) ranges.push([from, match.index + match[0].length]);
    }
  }
  // A wrapper of an agent that was cut off before its end hides the rest.
  for (const [name, stack] of open) {
    const from = stack[0];
    if (from !== undefined && /[_-]/.test(name)) ranges.push([from, text.length]);
  }
  return ranges;
}

const FENCE = /^[ \t]{0,8}(?:[-*+] |\d{1,3}[.)] )?(`{3,}|~{3,})/;
const QUOTE = /^[ \t]{0,8}>/;
const INJECTED = /^[^\p{L}\n]{0,12}memory context\b/iu;
const TABLE = /^[ \t]*\|/;
const LOG_LINE =
  /^\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\b[:\s\]]|Traceback \(|\s+at .{1,200}:\d+|[\w.]*(?:Error|Exception): |\$ |❯ |>>> |PS [A-Z]:\\)/;
const CODE_LINE =
  /^\s*(?:(?:export |public |private |static |async )*(?:const|let|var|function|class|interface|import|from|def|fn|func|package|using|struct|enum|return|if|for|while|elif|else|try|except|catch|print|echo)\b.{0,400}(?:[;{}():=]|=>)\s*$|#include\b|(?:INSERT INTO|SELECT|UPDATE|DELETE FROM|CREATE TABLE|ALTER TABLE)\b.{0,400}(?:;|\bVALUES\b|\bFROM\b|\bSET\b)|\/\/|\/\*|\*\/|@\w+\(|[\w.]{1,60}\(.{0,300}\);?\s*$|[\w.[\]]{1,60} ?[-+*]?= ?.{1,300};\s*$|[{}\])]+[;,]?\s*$|<\?)/;

function byLine(text: string): Range[] {
  const ranges: Range[] = [];
  let fence = "";
  let fenceFrom = 0;
  let injected = false;
  let blankBefore = true;
  let quoted = false;
  for (let from = 0; from <= text.length;) {
    const newline = text.indexOf("\n", from);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(from, Math.min(end, from + 1000));
    const empty = line.trim() === "";
    if (fence !== "") {
      const close = FENCE.exec(line)?.[1] ?? "";
      if (close.startsWith(fence) && line.trim() === close) {
        ranges.push([fenceFrom, end]);
        fence = "";
      }
    } else {
      const open = FENCE.exec(line)?.[1];
      if (empty) {
        injected = false;
        quoted = false;
      } else if (INJECTED.test(line)) injected = true;
      if (open !== undefined && !line.slice(line.indexOf(open) + open.length).includes("```")) {
        fence = open;
        fenceFrom = from;
      } else if (injected || isForeignLine(line, blankBefore)) {
        ranges.push([from, end]);
        quoted = QUOTE.test(line);
      } else if (quoted && !empty && !/^\s*(?:[-*+#]|\d+[.)])/.test(line) && /^\s*\p{Ll}/u.test(line)) {
        // Markdown's lazy continuation of a quote.
        ranges.push([from, end]);
      } else quoted = false;
    }
    blankBefore = empty;
    if (newline === -1) break;
    from = newline + 1;
  }
  if (fence !== "") ranges.push([fenceFrom, text.length]);
  return ranges;
}

function isForeignLine(line: string, blankBefore: boolean): boolean {
  if (QUOTE.test(line) || TABLE.test(line) || LOG_LINE.test(line) || CODE_LINE.test(line)) return true;
  return blankBefore && /^(?: {4,}|\t)(?![-*+•] |\d+[.)] )\S/.test(line);
}

const HEADER =
  /^\s{0,3}(?:\*\*)?(?:from|to|cc|bcc|subject|date|sent|von|an|betreff|gesendet|de|à|a|objet|para|asunto|assunto|da|oggetto|van|aan|onderwerp|verzonden|lähettäjä|vastaanottaja|aihe|发件人|收件人|抄送|主题|日期|差出人|宛先|件名|日時)(?:\*\*)?\s{0,2}[:：]\s*\S/iu;
const SUBJECT =
  /^\s{0,3}(?:\*\*)?(?:subject|betreff|objet|asunto|assunto|oggetto|onderwerp|aihe|主题|件名)(?:\*\*)?\s{0,2}[:：]/iu;
const CV =
  /^\s*(?:#+ )?(?:curriculum vitae|r[eé]sum[eé]|lebenslauf|ansioluettelo|履歴書|职务经歴書|職務経歴書|简历|个人简历|hoja de vida|cv)\s*:?\s*$/iu;
/** A line that only says what kind of text comes: "Poem:", "Job ad:", „Songtext:“. */
const LABEL =
  /^\s*(?:#+ |\*\*)?(?:(?:the|my|a|an|this|following|here(?:'s| is) (?:the|a|an|my)|original|der|die|das|le|la|les|el|il|lo|o|de|het) ){0,3}(?:poem|lyrics|song(?:text| lyrics)?|haiku|verse|chat(?: log)?|transcript|dialog(?:ue|o)?|conversation|story|excerpt|passage|quote|review|job (?:ad|posting|description)|cover letter|e-?mail|mail|letter|message|post|tweet|article|essay|text|paragraph|input|example|prompt|gedicht|liedtext|geschichte|brief|nachricht|beispiel|aufsatz|artikel|poème|paroles|texte|lettre|exemple|histoire|poema|letra|carta|texto|ejemplo|mensaje|cuento|poesia|testo|lettera|esempio|racconto|exemplo|mensagem|conto|gedicht|liedje|brief|tekst|voorbeeld|verhaal|runo|sanat|kirje|teksti|esimerkki|viesti|tarina)(?:\*\*)?\s?:(?:\*\*)?\s*$/iu;
const SALUTATION =
  /^\s*(?:dear|hi|hello|hey|good (?:morning|evening|afternoon)|to whom|liebe[rs]?|hallo|sehr geehrte[rs]?|guten (?:tag|morgen)|bonjour|salut|ch[eè]re?s?|madame|monsieur|estimad[oa]s?|querid[oa]s?|hola|buen[oa]s(?: d[ií]as| tardes)?|ol[áa]|prezad[oa]s?|car[oaie]|gentile|egregio|buongiorno|salve|ciao|beste|geachte|hoi|dag|hei|hyv[äa]|moi|terve|各位|尊敬的|亲爱的|大家好|皆さま|皆様|みなさん|拝啓|お世話になって)[^\n.?!。]{0,60}[,:：，、！!]?\s*$/iu;
const SPEAKER =
  /^\s*(?:[-*•] )?(?:\[?\(?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?\)?\]?\s*[-–]?\s*)?(?:\*\*)?([\p{Lu}\p{Lo}][\p{L}.'’-]{0,30}(?: [\p{Lu}\p{Lo}\d][\p{L}\d.'’-]{0,30}){0,2})(?:\*\*)?\s{0,2}(?:\([^()\n]{1,20}\))?\s{0,2}[:：]\s*\S/u;
const CHAT_LINE =
  /^\s*\[?\(?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[AaPp][Mm])?\)?\]?\s*[-–]?\s*<?@?[\p{L}][\p{L}\d_.' -]{0,30}>?\s{0,2}[:：]/u;
/** "Note: …" is no speaker. */
const NO_SPEAKER =
  /^(?:note|also|context|background|update|ps|p\.s|fyi|edit|question|task|goal|btw|tldr|tl;dr|intro|summary|correction|reminder|preference|preferences|hinweis|frage|info|aufgabe|nachtrag|korrektur|kontext|hintergrund|nota|pregunta|contexto|tarea|question|remarque|contexte|t[aâ]che|pergunta|tarefa|domanda|contesto|compito|vraag|opmerking|achtergrond|taak|huom|kysymys|tausta|teht[äa]v[äa]|备注|注意|问题|背景|补充|另外|质问|質問|補足|背景|注|お願い)$/iu;
const HEADING = /^#{1,6} +(\S.*)$/;
const OWN_HEADING =
  /\b(?:me|my|mine|i|about|preferences?|ich|mich|meine?|moi|mes|mon|m[ií]s?|mí|eu|meu|minhas?|io|mio|mie|miei|mij|mijn|minä|minusta|omat)\b|我|私|自己紹介|关于/iu;

/** Text that the user pasted: mail with headers, a CV, transcripts, chat logs, documents, letters. */
function pasted(text: string): Range[] {
  const ranges: Range[] = [];
  const speakers: Array<{ from: number; end: number; name: string; timed: boolean }> = [];
  let ownBefore = false;
  let headers = 0;
  let headerFrom = 0;
  for (let from = 0; from <= text.length;) {
    const newline = text.indexOf("\n", from);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(from, Math.min(end, from + 300));
    if (line.trim() !== "") {
      if (HEADER.test(line)) {
        if (headers === 0) headerFrom = from;
        headers += 1;
      } else headers = 0;
      if (LABEL.test(line)) ranges.push([from, labelled(text, end)]);
      const mail = headers >= 2 || (headers === 1 && SUBJECT.test(line));
      const heading = HEADING.exec(line)?.[1];
      const document = ownBefore && heading !== undefined && !OWN_HEADING.test(heading);
      if (mail || CV.test(line) || document || (ownBefore && end - from < 70 && SALUTATION.test(line))) {
        ranges.push([mail ? headerFrom : from, text.length]);
        break;
      }
      const timed = CHAT_LINE.test(line);
      const name = SPEAKER.exec(line)?.[1] ?? (timed ? line.trim() : undefined);
      if (name !== undefined && !NO_SPEAKER.test(name) && !/https?$/i.test(name))
        speakers.push({ from, end, name, timed });
      ownBefore = true;
    }
    if (newline === -1) break;
    from = newline + 1;
  }
  const timed = speakers.filter((line) => line.timed).length;
  if (speakers.length >= 2 || timed >= 1) {
    // Everything from the first to the last speaker belongs to the talk, unless only a few labels stand there.
    const first = speakers[0];
    const last = speakers[speakers.length - 1];
    if (first !== undefined && last !== undefined) ranges.push([first.from, paragraphEnd(text, last.end)]);
  }
  return ranges;
}

/** Blank lines behind the label belong to it. */
function labelled(text: string, end: number): number {
  const start = /^\s*/.exec(text.slice(end))?.[0].length ?? 0;
  return paragraphEnd(text, end + start);
}

function paragraphEnd(text: string, from: number): number {
  const end = text.indexOf("\n\n", from);
  return end === -1 ? text.length : end;
}

const QUOTE_PAIRS: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["“", '”“"'],
  ["„", "“”"],
  ["”", "”"],
  ["«", "»"],
  ["»", "«»"],
  ["‹", "›"],
  ["「", "」"],
  ["『", "』"],
  ["`", "`"],
  ["‘", "’"],
  ["'", "'"],
]);
const LONGEST_QUOTE = 600;

/** Quoted stretches of one line of `text`, marks included, and inline code. */
export function quotedRanges(text: string): Range[] {
  const ranges: Range[] = [];
  if (!/["'“„”«»‹「『`‘]/.test(text)) return ranges;
  /** Opening mark → place up to which no closing one follows: keeps unpaired marks linear. */
  const unpaired = new Map<string, number>();
  for (let at = 0; at < text.length; at += 1) {
    const open = text[at] ?? "";
    const closers = QUOTE_PAIRS.get(open);
    if (closers === undefined) continue;
    const single = open === "'" || open === "‘";
    // An apostrophe follows a letter, an opening mark does not.
    if (at > 0 && open !== "「" && open !== "『" && /[\p{L}\p{N}]/u.test(text[at - 1] ?? "")) {
      if (single || open === '"' || open === "”" || open === "»" || open === "`") continue;
    }
    if (at < (unpaired.get(open) ?? 0)) continue;
    const limit = Math.min(text.length, at + LONGEST_QUOTE);
    let close = -1;
    for (let to = at + 1; to < limit; to += 1) {
      if (text[to] === "\n") break;
      if (!closers.includes(text[to] ?? "")) continue;
      if (single && /[\p{L}\p{N}]/u.test(text[to + 1] ?? "")) continue;
      close = to;
      break;
    }
    if (close === -1) {
      unpaired.set(open, limit);
      continue;
    }
    ranges.push([at, close + 1]);
    at = close;
  }
  return ranges;
}
