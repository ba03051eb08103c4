/** Role-play goes on from message to message: what is said in it is said by somebody who is not there. */
import { straightApostrophes } from "../text/fold.ts";

/** Somebody asks for one, and takes part. Role-playing games as such are a hobby. */
const OPENS =
  /\b(?:let'?s|let us|want to|wanna|can we|could we|shall we|we'?ll|start|begin|continue|do|play|in this)(?: \w+){0,3} role[- ]?play(?:ing)?\b(?! games?\b)|^\W*role[- ]?play(?:ing)?\s*[:,.!–—-]|\btext[- ]adventure\b|\bdungeon master\b|\bstay in character\b|\brollenspiel(?:e|en)?(?: (?:machen|spielen|starten)|\s*[:,.!–—-])|\b(?:lass uns|wir spielen|spielen wir|starte)\b[^.!?\n]{0,40}\brollenspiel|\b(?:faisons|jouons|on fait|commençons)\b[^.!?\n]{0,40}\bjeux? de rôle|^\W*jeu de rôle\s*[:,.!]|\b(?:hagamos|juguemos|vamos a|empecemos)\b[^.!?\n]{0,40}\bjuego de rol|^\W*juego de rol\s*[:,.!]|\b(?:facciamo|giochiamo|iniziamo)\b[^.!?\n]{0,40}\bgioco di ruolo|^\W*gioco di ruolo\s*[:,.!]|\b(?:vamos|faz|bora)\b[^.!?\n]{0,40}\b(?:role-?play|jogo de interpretação)|\b(?:laten we|we spelen|start)\b[^.!?\n]{0,40}\brollenspel|^\W*rollenspel\s*[:,.!]|\b(?:leikitään|pelataan|aloitetaan)\b[^.!?\n]{0,40}roolipeli|^\W*roolipeli\S{0,4}\s*[:,.!]|角色扮演(?!游戏)|文字冒险|ロールプレイ(?!ング)|なりきり(?:チャット|で)/iu;

/** What ends it, at the beginning of a message. */
const LEAVES =
  /^[^\p{L}]*(?:(?:ok(?:ay)?|alright|all right|well|gut|also|bon|bien|vale|va bene|goed|no niin|好|はい)[\s,.!、，]+){0,2}(?:stop\b|stopp\b|enough\b|the end\b|end (?:of )?(?:the )?(?:scene|role[- ]?play|game|story)\b|game over\b|let'?s (?:stop|end|leave)\b|that'?s enough\b|no more role|quit (?:the |this )?(?:game|role)|(?:step|going|out) out of character|out of character|ooc\b|back to (?:reality|real life|normal|work|me)\b|thanks for playing|schluss\b|genug\b|spiel (?:beendet|vorbei|aus)\b|hör(?:en wir)? auf\b|zurück zur realität|arrêt(?:e|ons)\b|on arrête|fin du jeu|assez\b|basta\b|fin del juego|dejemos\b|para ya|paremos\b|chega\b|fim do jogo|fine del gioco|smettiamo\b|genoeg\b|einde\b|lopeta(?:an)?\b|riittää\b|seis\b|停|结束|够了|不玩了|回到现实|終わり|おしまい|やめ|ストップ|現実に戻)/iu;

/** A pause that ends it as well. */
const PAUSE_MS = 3 * 60 * 60_000;
/** Characters of a message. */
const LOOKED_AT = 2_000;

/** What was said before in the same conversation, oldest first; `at` in ms. */
export type Earlier = { text: string; at: number };

/** Whether a role-play that somebody asked for earlier still goes on in this message. */
export function isPlaying(earlier: readonly Earlier[], message: Earlier): boolean {
  let playing = false;
  let last = message.at;
  const goesOn = ({ text, at }: Earlier) =>
    playing && at - last <= PAUSE_MS && !LEAVES.test(straightApostrophes(text.slice(0, LOOKED_AT)));
  for (const one of earlier) {
    playing = goesOn(one) || OPENS.test(straightApostrophes(one.text.slice(0, LOOKED_AT)));
    last = one.at;
  }
  return goesOn(message);
}
