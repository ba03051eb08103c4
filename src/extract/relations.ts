/** Words for people and animals that somebody calls theirs, and for things with a name, by language. */
import type { Lang } from "../text/language.ts";

const words = (text: string): ReadonlySet<string> =>
  new Set(
    text
      .trim()
      .split(/\s+/)
      .map((word) => word.replaceAll("_", " ")),
  );

/** People: family, friends, work, health. */
export const people: Readonly<Record<Lang, ReadonlySet<string>>> = {
  en: words(`sister brother mother father mom mum dad wife husband partner girlfriend boyfriend fiancé fiancée fiance
    fiancee son daughter grandmother grandfather grandma grandpa granny aunt uncle cousin niece nephew twin stepmother
    stepfather stepson stepdaughter stepsister stepbrother godmother godfather mother-in-law father-in-law
    sister-in-law brother-in-law son-in-law daughter-in-law friend best_friend roommate flatmate neighbor neighbour boss manager
    supervisor colleague coworker co-worker teammate mentor coach trainer therapist doctor dentist teacher tutor landlord
    older_sister younger_sister big_sister little_sister older_brother younger_brother big_brother little_brother
    eldest_son eldest_daughter oldest_son oldest_daughter youngest_son youngest_daughter ex-wife ex-husband co-founder cofounder`),
  de: words(`schwester bruder mutter vater mama papa frau mann ehefrau ehemann partner partnerin freundin freund sohn
    tochter oma opa großmutter großvater tante onkel cousin cousine nichte neffe zwillingsschwester zwillingsbruder schwiegermutter
    schwiegervater schwägerin schwager mitbewohner mitbewohnerin nachbar nachbarin chef chefin kollege kollegin
    trainer trainerin therapeut therapeutin arzt ärztin zahnarzt zahnärztin lehrer lehrerin vermieter vermieterin verlobte verlobter`),
  fr: words(`sœur soeur frère mère père maman papa femme mari épouse époux partenaire compagne compagnon copine copain
    fiancé fiancée fils fille grand-mère grand-père tante oncle cousin cousine nièce neveu belle-mère beau-père belle-sœur
    beau-frère amie ami meilleure_amie meilleur_ami colocataire voisin voisine patron patronne chef cheffe manager collègue médecin
    dentiste professeur coach`),
  es: words(`hermana hermano madre padre mamá papá esposa esposo mujer marido pareja novia novio prometida prometido hijo
    hija abuela abuelo tía tío prima primo sobrina sobrino suegra suegro cuñada cuñado amiga amigo mejor_amiga mejor_amigo
    vecina vecino jefa jefe compañera compañero doctora doctor dentista profesora profesor entrenador entrenadora`),
  pt: words(`irmã irmão mãe pai esposa esposo mulher marido parceira parceiro namorada namorado noiva noivo filha filho avó
    avô tia tio prima primo sobrinha sobrinho sogra sogro cunhada cunhado amiga amigo melhor_amiga melhor_amigo vizinha
    vizinho chefe colega médica médico dentista professora professor`),
  it: words(`sorella fratello madre padre mamma papà moglie marito compagna compagno fidanzata fidanzato ragazza ragazzo
    figlia figlio nonna nonno zia zio cugina cugino nipote suocera suocero cognata cognato amica amico migliore_amica
    migliore_amico coinquilina coinquilino vicina vicino capo collega dottoressa dottore dentista professoressa professore`),
  nl: words(`zus broer moeder vader mama papa vrouw man partner vriendin vriend verloofde zoon dochter oma opa tante oom
    nicht neef schoonmoeder schoonvader schoonzus zwager huisgenoot buurvrouw buurman baas manager collega huisarts tandarts
    docent trainer beste_vriendin beste_vriend`),
  fi: words(`sisko veli äiti isä vaimo mies aviomies puoliso kumppani tyttöystävä poikaystävä kihlattu poika tytär mummo
    mummi ukki vaari täti setä eno serkku anoppi appi ystävä kaveri paras_ystävä naapuri pomo esimies kollega työkaveri
    lääkäri hammaslääkäri opettaja valmentaja isosisko pikkusisko isoveli pikkuveli`),
  zh: words(`姐姐 妹妹 哥哥 弟弟 妈妈 爸爸 母亲 父亲 妻子 老婆 丈夫 老公 女朋友 男朋友 儿子 女儿 奶奶 爷爷 外婆 外公 姑姑 叔叔 舅舅
    表妹 表弟 表姐 表哥 朋友 室友 邻居 老板 经理 同事 医生 老师 教练`),
  ja: words(`姉 妹 兄 弟 母 父 妻 夫 彼女 彼氏 恋人 婚約者 息子 娘 祖母 祖父 叔母 叔父 いとこ 友達 友人 親友 隣人 上司 同僚 先生 医者
    コーチ お母さん お父さん お姉さん お兄さん`),
};

/** Animals that live with people. */
export const pets: Readonly<Record<Lang, ReadonlySet<string>>> = {
  en: words("dog cat puppy kitten horse pony parrot rabbit hamster bird budgie tortoise pet"),
  de: words("hund katze kater welpe pferd pony papagei kaninchen hamster vogel wellensittich"),
  fr: words("chien chienne chat chatte chiot chaton cheval perroquet lapin hamster"),
  es: words("perro perra gato gata cachorro caballo loro conejo hámster"),
  pt: words("cachorro cachorra cão gato gata cavalo papagaio coelho hamster"),
  it: words("cane gatto gatta cucciolo cavallo pappagallo coniglio criceto"),
  nl: words("hond kat poes puppy kitten paard pony papegaai konijn hamster"),
  fi: words("koira kissa pentu hevonen poni papukaija kani hamsteri"),
  zh: words("狗 猫 小狗 小猫"),
  ja: words("犬 猫 ペット 愛犬 愛猫"),
};

/** Of "my <thing> is X" and "my favourite <thing> is X", what X then is. */
export const things: Readonly<Record<string, string>> = {
  company: "organisation",
  employer: "organisation",
  startup: "organisation",
  school: "organisation",
  university: "organisation",
  bank: "organisation",
  team: "organisation",
  firma: "organisation",
  arbeitgeber: "organisation",
  entreprise: "organisation",
  empresa: "organisation",
  azienda: "organisation",
  bedrijf: "organisation",
  hometown: "place",
  "home town": "place",
  city: "place",
  birthplace: "place",
  heimatstadt: "place",
  project: "project",
  "side project": "project",
  projekt: "project",
  projet: "project",
  proyecto: "project",
  projeto: "project",
  progetto: "project",
  editor: "tool",
  ide: "tool",
  "text editor": "tool",
  "code editor": "tool",
  "programming language": "tool",
  framework: "tool",
  database: "tool",
  library: "tool",
  browser: "tool",
  terminal: "tool",
  shell: "tool",
  "operating system": "tool",
  distro: "tool",
  "note-taking app": "tool",
};

/** Capitalised words that name nobody and nothing of one's own: days, months, languages. */
export const commonNames: ReadonlySet<string> =
  words(`monday tuesday wednesday thursday friday saturday sunday january february
  march april may june july august september october november december christmas easter english german french
  spanish portuguese italian dutch finnish chinese japanese russian arabic korean hindi swedish god internet ok okay`);

/** People whom somebody may also find in a thing: "coffee is my friend", "hunger is my coach". */
export const loose: Partial<Record<Lang, ReadonlySet<string>>> = {
  en: words(`friend best_friend partner boss manager supervisor colleague coworker co-worker teammate mentor coach trainer
    therapist doctor dentist teacher tutor landlord neighbor neighbour father mother`),
  de: words(`freundin freund partner partnerin chef chefin kollege kollegin nachbar nachbarin trainer trainerin therapeut
    therapeutin arzt ärztin zahnarzt zahnärztin lehrer lehrerin vermieter vermieterin`),
  fr: words(
    "amie ami meilleure_amie meilleur_ami partenaire patron patronne chef cheffe manager médecin professeur coach",
  ),
  es: words(
    "amiga amigo mejor_amiga mejor_amigo pareja jefa jefe doctora doctor profesora profesor entrenador entrenadora",
  ),
  pt: words(
    "amiga amigo melhor_amiga melhor_amigo parceira parceiro chefe médica médico professora professor",
  ),
  it: words("amica amico migliore_amica migliore_amico capo dottoressa dottore professoressa professore"),
  nl: words("vriendin vriend beste_vriendin beste_vriend partner baas manager docent trainer"),
};
