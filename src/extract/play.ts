/** Role-play goes on from message to message: what is said in it is said by somebody who is not there. */
import { straightApostrophes } from "../text/fold.ts";

/** Somebody asks for one, and takes part. Role-playing games as such are a hobby. */
const OPENS =
  /\b(?:let'?s|let us|want to|wanna|can we|could we|shall we|we'?ll|start|begin|continue|do|play|in this)(?: \w+){0,3} role[- ]?play(?:ing)?\b(?! games?\b)|^\W*role[- ]?play(?:ing)?\s*[:,.!–—-]|\btext[- ]adventure\b|\bdungeon master\b|\bstay in character\b|\brollenspiel(?:e|en)?(?: (?:machen|spielen|starten)|\s*[:,.!–—-])|\b(?:lass uns|wir spielen|spielen wir|starte)\b[^.!?\n]{0,40}\brollenspiel|\b(?:faisons|jouons|on fait|commençons)\b[^.!?\n]{0,40}\bjeux? de rôle|^\W*jeu de rôle\s*[:,.!]|\b(?:hagamos|juguemos|vamos a|empecemos)\b[^.!?\n]{0,40}\bjuego de rol|^\W*juego de rol\s*[:,.!]|\b(?:facciamo|giochiamo|iniziamo)\b[^.!?\n]{0,40}\bgioco di ruolo|^\W*gioco di ruolo\s*[:,.!]|\b(?:vamos|faz|bora)\b[^.!?\n]{0,40}\b(?:role-?play|jogo de interpretação)|\b(?:laten we|we spelen|start)\b[^.!?\n]{0,40}\brollenspel|^\W*rollenspel\s*[:,.!]|\b(?:leikitään|pelataan|aloitetaan)\b[^.!?\n]{0,40}roolipeli|^\W*roolipeli\S{0,4}\s*[:,.!]|角色扮演(?!游戏)|文字冒险|ロールプレイ(?!ング)|なりきり(?:チャット|で)/iu;

/** What ends it where a message begins, behind "ok" and laughter. */
const LEAVES =
  /^[^\p{L}]*(?:(?:ok(?:ay)?|alright|all right|well|(?:ha ?){2,}|(?:he ?){2,}|(?:ja ?){2,}|lol|gut|also|bon|bien|vale|va bene|goed|no niin|好|哈+|はい|ははは?)[\s,.!?、，。！]+){0,3}(?:stop\b|stopp\b|enough\b|the end(?=[.!,]|\W*$)|that'?s enough\b|no more role|seriously\b|for real\b|that was (?:fun|great|funny)|schluss\b|genug\b|jetzt mal ernst|im ernst|hör(?:en wir)? auf\b|arrêt(?:e|ons)\b|on arrête|assez\b|sérieusement|basta\b|dejemos\b|para ya|paremos\b|(?:ahora )?en serio|chega\b|falando sério|smettiamo\b|scherzi a parte|genoeg\b|even serieus|lopeta(?:an)?\b|riittää\b|seis\b|vakavasti|停|结束|够了|说真的|不玩了|終わり|おしまい|やめ|ストップ|真面目な話)|^[^\p{L}]*(?:(?:ha ?){2,}|(?:he ?){2,}|(?:ja ?){2,}|lol|mdr|哈+)[\s,.!]*(?:thanks|thank you|thx|danke|merci|gracias|grazie|obrigad[oa]|bedankt|dank je|kiitos|谢谢)/iu;

/** What ends it wherever it stands. */
const OVER =
  /\b(?:end (?:of )?(?:the |this )?(?:scene|role[- ]?play|game|story)|game over|let'?s (?:stop|end|leave) (?:it|this|here|now|the)|quit (?:the |this )?(?:game|role)|out of character|ooc|back to (?:reality|real life)|in real life|irl|my real name|thanks for playing|spiel (?:beendet|vorbei|aus)|ende (?:des|vom) (?:rollen)?spiels?|zurück zur realität|fin du jeu|retour à la réalité|fin del juego|volvamos a la realidad|fim do jogo|voltando à realidade|fine del gioco|torniamo alla realtà|einde (?:van het )?(?:rollen)?spel|terug naar de werkelijkheid|peli loppui|pelin loppu|takaisin todellisuuteen)\b|游戏结束|回到现实|ゲーム終了|現実に戻/iu;

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
    playing && at - last <= PAUSE_MS && !isLeft(straightApostrophes(text.slice(0, LOOKED_AT)));
  for (const one of earlier) {
    playing = goesOn(one) || OPENS.test(straightApostrophes(one.text.slice(0, LOOKED_AT)));
    last = one.at;
  }
  return goesOn(message);
}

const isLeft = (text: string) => LEAVES.test(text) || OVER.test(text);
