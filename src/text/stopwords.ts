import { stopwords as dutch } from "@orama/stopwords/dutch";
import { stopwords as english } from "@orama/stopwords/english";
import { stopwords as finnish } from "@orama/stopwords/finnish";
import { stopwords as french } from "@orama/stopwords/french";
import { stopwords as german } from "@orama/stopwords/german";
import { stopwords as italian } from "@orama/stopwords/italian";
import { stopwords as japanese } from "@orama/stopwords/japanese";
import { stopwords as portuguese } from "@orama/stopwords/portuguese";
import { stopwords as spanish } from "@orama/stopwords/spanish";
import type { Lang } from "./language.ts";

/** Words the lists lack although questions are full of them. */
const MORE: Record<Lang, string> = {
  en: `a whose yes im i'm ive dont doesnt didnt isnt wasnt cant wont whats thats lets us ok okay please also just get got
    gets getting yet still even really maybe tell know say said something anything someone anyone many much
    what's who's how's where's which's when's why's it'll that'll there any about may might shall else`,
  de: `ich's gibt gab geht mal schon gern bitte danke eben ganz immer mehr sagen dass wann warum wieso weshalb wofür
    woher wohin wem wen wer wessen deines heute bald sei wäre wären hätte hätten mein meins beim vor ja nein
    darf dürfen mag kannst könnt kannte sehr seit bereits dabei davon dafür daran darauf daraus`,
  fr: `a très plus moins aussi alors comment pourquoi quand où qui quoi dont cela ça c'est j'ai j'aime n'est n'ai
    d'un d'une l'on qu'il qu'elle qu'on qu'un s'il oui non si bien fait faire peux peut veux veut va vais vas tout toute
    tous toutes être avoir cette chez depuis pendant avant après entre vers donc car ni or peu quelle voici voilà`,
  es: `qué cuál dónde cuándo porqué`,
  pt: `é ser ter vai vou vão pode posso podem faz fazer onde porque porquê quê quais qualquer cada outro outra outros
    outras todo toda todos todas ainda então assim aqui ali lá bem muita muitos muitas pouco sim tão tanto sobre
    ante após desde contra sob deste desta disso isto ao há`,
  it: `essere avere fare fa fatto può posso puoi vuole voglio vuoi quando perché dov'è c'è cos'è qual cosa così ancora
    già sempre poi molto molta molti molte poco pochi ogni altro altra altri altre allora quindi però oppure o sì no
    prima dopo sotto sopra senza verso d un' l' dell' nell' all'`,
  nl: `we wij jij jullie jouw onze ons haar hun hen mijn is was waren bent zijn waar wanneer waarom welke welk hoeveel
    zo'n 't 'n gaan gaat ging heel erg wel niet maar ook al als dus eens even graag nou mag moet moeten zullen zult
    zou zouden wilt willen wilde kunt kon konden deed doet doe elke elk sommige enkele laat`,
  fi: `oon ois oot emmä emme eikä enkä myös ihan aina joo kyllä ehkä kai vielä jo juuri hyvin paljon vähän enemmän
    minkälainen millainen kuinka miten milloin miksi minne mihin missä mistä onko oliko voiko voin voit voi voimme voivat
    pitää pitäisi saa sais olla olisiko joku jotain jokin jotakin kaikki kaikkia muut muu toinen ennen jälkeen ilman
    paitsi sitten siis eli sekä tästä siitä noista mun sun mulla sulla mä sä tää toi`,
  zh: `的 了 是 在 和 与 及 或 也 都 就 而 但 吗 呢 吧 啊 呀 嘛 我 你 您 他 她 它 我们 你们 他们 这 那 这个 那个 哪 哪里 什么 怎么 为什么
    谁 几 多少 一个 一些 有 被 把 给 从 向 对 于 以 因为 所以 如果 请 很 太 还 又 再 个 着 过 地 得 之 其`,
  ja: `の に は を が と で も や から まで より へ か ね よ な だ です ます でした ました する した して いる いた ある あった
    この その あの どの これ それ あれ どれ ここ そこ どこ いつ 誰 何 なに なぜ どう 私 僕 俺 あなた こと もの ため よう さん てる ない`,
};

/** Content words that the lists wrongly count as noise. */
const LESS: Partial<Record<Lang, string>> = {
  es: `trabajo trabaja trabajan trabajamos trabajar trabajas trabajais lugar general valor horas tiempo total pais paìs
    empleo emplear cinco cuatro siete seis ocho dos tres verdad verdadera verdadero ejemplo lado largo medio final
    ayer hoy temprano tarde despacio deprisa conocer sabe saber sabemos saben sabes dia día dias días parte manera modo ex
    mejor peor mayor menor gran grandes buen buena buenas bueno buenos mal nueva nuevas nuevo nuevos primera primero
    primeros segunda segundo tercera ultimo última última últimas último últimos pasada pasado momento cosas cuenta
    pronto uso usar usa usan usas usamos usais llevar lleva llegó verdadera`,
  nl: `men wezen uw`,
  de: `neu`,
  fi: `poikki noin`,
};

const LISTS: Record<Lang, readonly string[]> = {
  en: english,
  de: german,
  fr: french,
  es: spanish,
  pt: portuguese,
  it: italian,
  nl: dutch,
  fi: finnish,
  zh: [],
  ja: japanese,
};

const sets = new Map<Lang, Set<string>>();

/** The stop words of one language, lower case, accents on, straight apostrophes. */
export function stopWords(lang: Lang): ReadonlySet<string> {
  let set = sets.get(lang);
  if (set === undefined) {
    const less = new Set((LESS[lang] ?? "").split(/\s+/));
    set = new Set(
      [...LISTS[lang], ...MORE[lang].split(/\s+/)].filter((word) => word !== "" && !less.has(word)),
    );
    sets.set(lang, set);
  }
  return set;
}

/** Whether a lower-case word (accents on, straight apostrophes) only holds the sentence together. */
export function isStopWord(word: string, lang: Lang): boolean {
  return stopWords(lang).has(word);
}
