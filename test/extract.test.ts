import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { corrected, corrects, matchesForget } from "../src/extract/correct.ts";
import { duplicateKey, nearDuplicate } from "../src/extract/duplicates.ts";
import { extractExchange } from "../src/extract/exchange.ts";
import { extractFacts } from "../src/extract/facts.ts";
import { slugKey } from "../src/extract/keys.ts";

/** What a user's text says, as `category polarity key: content`. */
function said(text: string): string[] {
  return extractFacts(text, "user").facts.map(
    (fact) => `${fact.category}${fact.polarity} ${fact.key}: ${fact.content}`,
  );
}

describe("statements", () => {
  test.each([
    ["I really prefer oolong.", "preference+ preference:oolong: Prefers oolong"],
    ["I don't like cilantro", "preference- preference:cilantro: Does not like cilantro"],
    ["I like C, it is small", "preference+ preference:c: Prefers C"],
    ["I like C++", "preference+ preference:c++: Prefers C++"],
    ["My favourite tool is Helix.", "preference+ preference:favourite_tool: Favourite tool: Helix"],
    [
      "I'll use Redis 7.2 for the queue. ok?",
      "decision+ decision:redis_7_2_for_the_queue: Decided to use Redis 7.2 for the queue",
    ],
    ["I've decided not to use Docker", "decision- decision:use_docker: Decided not to use Docker"],
    [
      "I always commit before pushing",
      "pattern+ pattern:commit_before_pushing: Habit: always commit before pushing",
    ],
    [
      "I never work after 6 p.m. because of the kids.",
      "pattern- pattern:work_after_6_p_m: Habit: never work after 6 p.m",
    ],
    ["My name is Ifeoma", "identity+ identity:name: Name is Ifeoma"],
    ["I live in Porto these days", "identity+ identity:home: Lives in Porto"],
    ["I'm a beekeeper", "identity+ identity:role: Is a beekeeper"],
    ["I work with Python and Rust.", "identity+ identity:python_and_rust: Works with Python and Rust"],
    ["My company is Nokia.", "identity+ identity:employer: Works at Nokia"],
    ["I quit Acme and joined Globex.", "identity+ identity:employer: Works at Globex"],
    ["I left my job at Acme to join Globex.", "identity+ identity:employer: Works at Globex"],
    ["I just got a new job at Globex!", "identity+ identity:employer: Works at Globex"],
    ["My company is called Tyrell", "identity+ identity:my_company: Company: Tyrell"],
    ["I no longer work with PHP", "pattern- pattern:work_with_php: No longer: work with PHP"],
    ["Ich arbeite seit 2019 bei SAP.", "identity+ identity:employer: Arbeitet bei SAP"],
    ["Ich bin bei Bosch angestellt.", "identity+ identity:employer: Arbeitet bei Bosch"],
    ["My sister's called Jo.", "identity+ identity:my_sister: Sister: Jo"],
    ["Ich arbeite in Leipzig.", "identity+ identity:in_leipzig: Arbeitet in Leipzig"],
    ["My new laptop is a ThinkPad.", "identity+ identity:my_laptop: Laptop is a ThinkPad"],
    ["Mein neuer Drucker heißt Otto.", "identity+ identity:my_drucker: Drucker heißt Otto"],
    ["Mi dirección actual es Calle Sol 5", "identity+ identity:my_dirección: Dirección es Calle Sol 5"],
    ["I hate PHP but WordPress forces me to use it", "preference- preference:php: Does not like PHP"],
    [
      "I like tea but only with milk",
      "preference+ preference:tea_but_only_with_milk: Prefers tea but only with milk",
    ],
    ["My aunt is Dutch and she's a pilot", "identity+ identity:my_aunt: Aunt is Dutch"],
    [
      "My nephew is allergic to soy, not me",
      "identity+ identity:my_nephew_allergic_to_soy: Nephew is allergic to soy",
    ],
    ["I don't live in Hull but in York", "identity+ identity:home: Lives in York"],
    ["I'm not vegan anymore, more like flexitarian", "identity- identity:vegan: No longer vegan"],
    ["I no longer work weekends, yay", "pattern- pattern:work_weekends: No longer: work weekends"],
    ["I don't eat pork", "pattern- pattern:pork: Does not eat pork"],
    ["I can't tolerate aspirin, it gives me hives", "identity- identity:aspirin: Cannot tolerate aspirin"],
    [
      "I take 40 mg of pantoprazole at night",
      "pattern+ pattern:40_mg_of_pantoprazole_at_night: Takes 40 mg of pantoprazole at night",
    ],
    ["I have epilepsy so keep it calm", "identity+ identity:epilepsy: Has epilepsy"],
    ["I'm the head chef at Lumen", "identity+ identity:role: Is the head chef at Lumen"],
    ["I'm studying biology at Uppsala", "identity+ identity:biology_at_uppsala: Studies biology at Uppsala"],
    [
      'When I say "go", print the plan',
      "instruction+ instruction:print_the_plan: When told go: print the plan",
    ],
    ["I play tennis, I play the guitar, and I live in Ghent", "identity+ identity:home: Lives in Ghent"],
    [
      "When you write recipes, use grams",
      "instruction+ instruction:when_you_write_recipes_use_grams: Instruction: When you write recipes, use grams",
    ],
    ["by the way I'm vegan, so no eggs", "identity+ identity:vegan: Is vegan"],
    [
      "We chose Nomad instead of ELK",
      "decision+ decision:nomad_instead_of_elk: Decided on Nomad instead of ELK",
    ],
    ["We moved into a flat near Lund last week", "identity+ identity:home: Lives in a flat near Lund"],
    ["My doctor put me on losartan, 50 mg", "pattern+ pattern:losartan_50_mg: Takes losartan, 50 mg"],
    ["I've been a glazier for ten years", "identity+ identity:role: Is a glazier"],
    ["My tutor is Ana Ruiz, room is 4", "identity+ identity:my_tutor: Tutor is Ana Ruiz"],
    ["My niece is called Ella, born in May", "identity+ identity:my_niece: Niece: Ella"],
    ["Soy alérgico al polen", "identity+ identity:alérgico_al_polen: Es alérgico al polen"],
    ["Je suis allergique au latex", "identity+ identity:allergique_au_latex: Est allergique au latex"],
    ["Non mangio carne", "pattern- pattern:mangio_carne: Abitudine: non mangio carne"],
    ["No como cerdo, soy así", "pattern- pattern:como_cerdo: Costumbre: no como cerdo"],
    ["Ik eet geen vis", "pattern- pattern:eet_geen_vis: Gewoonte: eet geen vis"],
    ["En syö kalaa", "pattern- pattern:syö_kalaa: Tapa: en syö kalaa"],
    ["Ich ziehe Tee dem Kaffee vor", "preference+ preference:tee_dem_kaffee: Zieht Tee dem Kaffee vor"],
    [
      "Ich nehme abends 20 mg Omeprazol",
      "pattern+ pattern:abends_20_mg_omeprazol: Nimmt abends 20 mg Omeprazol",
    ],
    ["Ich bin Vater von drei Söhnen", "identity+ identity:vater_von_drei_söhnen: Ist Vater von drei Söhnen"],
    ["Ich bin Hebamme in Trier", "identity+ identity:role: Ist Hebamme in Trier"],
    ["Ich lerne am liebsten mit Musik", "preference+ preference:mit_musik: Lerne am liebsten mit Musik"],
    ["Ich trinke keinen Wein, nur Saft", "preference- preference:wein: Mag nicht: Wein"],
    ["Ich habe mit dem Rauchen aufgehört", "pattern- pattern:rauchen: Hat aufgehört: Rauchen"],
    ["Ich habe eine Erdbeerallergie", "identity+ identity:erdbeerallergie: Hat Erdbeerallergie"],
    ["Ich wohne nicht in Jena sondern in Gera", "identity+ identity:home: Wohnt in Gera"],
    ["Ich arbeite nicht mehr bei Aldi, bin jetzt bei Rewe", "identity+ identity:employer: Arbeitet bei Rewe"],
    ["Please call me Bea please, not Beatrix", "identity+ identity:name: Name is Bea"],
    ["I gave up smoking three weeks ago", "pattern- pattern:smoking: No longer: smoking"],
    ["I relocated to Fargo for work", "identity+ identity:home: Lives in Fargo"],
    ["We moved to Lund with the kids in May", "identity+ identity:home: Lives in Lund"],
    ["I don't work at Initech any more", "identity- identity:employer: No longer works at Initech"],
    ["My new job is at Globex", "identity+ identity:employer: Works at Globex"],
    ["Please note that I'm colour blind", "identity+ identity:colour_blind: Is colour blind"],
    ["Soy madre de dos hijos", "identity+ identity:madre_de_dos_hijos: Es madre de dos hijos"],
    ["Soy ingeniera de minas", "identity+ identity:role: Es ingeniera de minas"],
    ["Ik ben een Stier", "identity+ identity:stier: Is Stier"],
    ["Je suis une maman de jumeaux", "identity+ identity:maman_de_jumeaux: Est maman de jumeaux"],
    ["My niece is 7 and loves frogs", "identity+ identity:my_niece_age: Niece is 7"],
    ["I'm a Capricorn", "identity+ identity:capricorn: Is a Capricorn"],
    ["I'm a mother of three", "identity+ identity:mother_of_three: Is a mother of three"],
    ["I'm a product owner at Acme", "identity+ identity:role: Is a product owner at Acme"],
    ["I'm a senior soil scientist", "identity+ identity:role: Is a senior soil scientist"],
    ["My parrot is called Rio", "identity+ identity:my_parrot: Parrot: Rio"],
    [
      "Remember that the gate code changes in May",
      "instruction+ instruction:the_gate_code_changes_in_may: Asked to remember: the gate code changes in May",
    ],
    [
      "From now on don't use tables.",
      "instruction- instruction:dont_use_tables: From now on: don't use tables",
    ],
    ["Ich mag keinen Lärm", "preference- preference:lärm: Mag nicht: Lärm"],
    ["Je n'aime pas le bruit", "preference- preference:le_bruit: N'aime pas le bruit"],
    ["Me he mudado a Toledo", "identity+ identity:home: Vive en Toledo"],
    ["Vivo en Málaga", "identity+ identity:home: Vive en Málaga"],
    ["Eu nunca como peixe", "pattern- pattern:como_peixe: Hábito: nunca como peixe"],
    ["Ho scelto Django", "decision+ decision:django: Ha scelto Django"],
    ["Ik haat lawaai", "preference- preference:lawaai: Houdt niet van lawaai"],
    ["Tykkään saunasta", "preference+ preference:saunasta: Pitää: saunasta"],
    ["我叫陈静", "identity+ identity:name: 名字：陈静"],
    ["京都に住んでいます", "identity+ identity:home: 京都に住んでいる"],
  ])("%j", (text, expected) => {
    expect(said(text)).toEqual([expected]);
  });

  test("two in one sentence, neither with the other", () => {
    expect(said("I love ramen but I hate queues").map((line) => line.split(": ")[1])).toEqual([
      "Prefers ramen",
      "Does not like queues",
    ]);
    expect(said("I like fog and hate wind").map((line) => line.split(": ")[1])).toEqual([
      "Prefers fog",
      "Does not like wind",
    ]);
    expect(said("I hate wind and love fog").map((line) => line.split(": ")[1])).toEqual([
      "Does not like wind",
      "Prefers fog",
    ]);
    expect(said("Hi, I'm a florist and I live in Cork. Any ideas?")).toHaveLength(2);
  });

  test("a name and what else somebody is stand beside each other", () => {
    const keys = (text: string) => extractFacts(text, "user").facts.map((fact) => fact.key);
    expect(keys("My dog is called Rex. My dog is deaf. My dog is a pug. My dog is 3.")).toEqual([
      "identity:my_dog",
      "identity:my_dog_deaf",
      "identity:my_dog_role",
      "identity:my_dog_age",
    ]);
    expect(keys("My girlfriend is Nadia. My new girlfriend is called Imke.")).toEqual([
      "identity:my_girlfriend",
    ]);
    expect(keys("My sister is vegan. My sister is no longer vegan.")).toEqual(["identity:my_sister_vegan"]);
    expect(keys("Mein Bruder heißt Jan. Mein Bruder ist blind.")).toHaveLength(2);
  });

  test("the last stand counts", () => {
    expect(said("I like tabs. Wait, no, I don't like tabs.")).toEqual([
      "preference- preference:tabs: Does not like tabs",
    ]);
    expect(
      said("I'll go with Vue. Scratch that, I'll go with Svelte.").map((line) => line.split(": ")[1]),
    ).toEqual(["Decided on Svelte"]);
    expect(said("I live in Bonn. Forget that I live in Bonn.")).toEqual([]);
  });

  test("more than 500 characters are cut at a word", () => {
    const [fact] = extractFacts(`I've decided to keep ${"package-name, ".repeat(60)}end`, "user").facts;
    expect(fact?.content.length).toBeLessThanOrEqual(500);
    expect(fact?.content).toEndWith("package-name");
  });

  test("types and origins", () => {
    const { facts } = extractFacts("I chose Hono. I prefer tea. Remember that I fly on Friday.", "user");
    expect(facts.map((fact) => fact.type)).toEqual(["episodic", "factual", "procedural"]);
    expect(facts.every((fact) => fact.origin === "user" && fact.lang === "en")).toBe(true);
  });
});

describe("what is no statement", () => {
  test.each([
    "Do I prefer tea?",
    "what do i usually order",
    "If I live in Spain, do I pay there?",
    "Suppose I'm a plumber. I work at a bank. What then",
    "My aunt says I always shout.",
    "I never said that I like cats.",
    'Is "I love trains" correct?',
    "> I prefer tabs\n\nagree?",
    "```\n// I will use a Map\n```",
    "<env>\nI live in Rome\n</env>\nfix it",
    "Memory context:\n- I live in Rome\n- Prefers tea\n\nhello",
    "Translate: I always sleep late",
    "Summarize: I live in Oslo. My name is Kari.",
    "In the novel, I live in Rome.",
    "Fasse zusammen: Ich wohne in Graz.",
    "I just love when that happens",
    "oh great, I just love fixing printers at night",
    "Ich ziehe im Mai nach Potsdam",
    "Horoscope: I am a Taurus. I live in hope and in Rome.",
    "My niece wrote this essay: My name is Ella. I like judo. Is it good?",
    "I got this text from a stranger: My new number is 0123 45",
    "My father's maiden name is for secret questions",
    "My feet are sore",
    "I work for myself",
    "My job is teaching kids to swim",
    "My bike is in the garage",
    "Our daughter is starting school",
    "Our picnic is next week",
    "Na toll, ich liebe Steuererklärungen",
    "I hate to admit it but he won",
    "I live and breathe chess",
    "I'll take the green one",
    "My meeting is in 20 minutes",
    "My boss: I want it by noon. I hate excuses.",
    'She wrote: "The soup was cold. I never come back." What now?',
    "My narrator: I live in a mill. I hate bread.",
    "When you explain this, use short words",
    "My password is hunter2secret!!",
    "My cousin works as a baker so he is up early",
    "I can't eat spicy food right now",
    "I don't eat out much",
    "I'm studying for my finals",
    "I'm the owner of this ticket",
    "Poem:\nI am the tide\nI live in the reeds\n\nWhich metre is this?",
    "My company is hiring.",
    "My boss's called me twice.",
    "Let's role-play. My name is Rex and I hate cats.",
    "From: Bea\nSubject: flat\n\nI live upstairs and I decided to move.",
    "Ana: I prefer trains\nLuc: I prefer planes\n\nwho is right?",
    "I'd like a table.",
    "I'm a bit lost",
    "I love it!",
    "I left the meeting and joined Slack",
    "She got a new job at Globex",
    "my question is simple",
    "I always get a 404 here",
    "It crashes whenever I save",
    "maybe I'll use Go",
    "Wenn ich in Wien wohne, was zahle ich?",
    "Elle dit que je suis toujours en retard.",
    "¿Prefiero té?",
    "彼は東京に住んでいます。",
    "如果我住在上海，怎么办？",
  ])("%j", (text) => {
    expect(said(text)).toEqual([]);
  });

  test("forgetting needs something to forget", () => {
    for (const text of ["forget it, thanks", "I forgot my umbrella", "don't forget the milk", "Vergiss es"]) {
      expect(extractFacts(text, "user").forgets).toEqual([]);
    }
    expect(extractFacts("Please forget that I live in Bonn.", "user").forgets).toMatchObject([
      { phrase: "I live in Bonn" },
    ]);
    expect(extractFacts("ok, forget what I said about boats, wrong chat", "user").forgets).toMatchObject([
      { phrase: "boats" },
    ]);
    expect(extractFacts("forget the thing about the 300 francs", "user").forgets).toMatchObject([
      { phrase: "the 300 francs" },
    ]);
  });
});

describe("both roles", () => {
  const contents = (user: string, assistant: string) =>
    extractExchange(user, assistant).facts.map((fact) => fact.content);

  test("the assistant's decisions are its own and say so", () => {
    const { facts } = extractExchange(
      "add dates",
      "I chose Temporal over Luxon because it is built in. Tests pass.",
    );
    expect(facts).toMatchObject([{ origin: "assistant", content: "Assistant chose Temporal over Luxon" }]);
  });

  test("narration, acknowledgements and texts on request teach nothing", () => {
    expect(contents("find it", "I'll read the file now. I'm going to use grep.")).toEqual([]);
    expect(contents("thanks", "I'll keep that in mind. I love helping!")).toEqual([]);
    expect(contents("write a diary entry of a sailor", "I hate the sea. I decided to go home.")).toEqual([]);
  });

  test("its word about the user yields to the user's", () => {
    expect(contents("install it", "Since you prefer pnpm, run this.")).toEqual([
      "Prefers pnpm (according to the assistant)",
    ]);
    expect(contents("I don't like pnpm.", "As you prefer pnpm, run this.")).toEqual(["Does not like pnpm"]);
    expect(contents("I prefer pnpm.", "Noted, you prefer pnpm.")).toEqual(["Prefers pnpm"]);
    expect(contents("forget that I live in Ulm", "Done. You live in Ulm is gone.")).toEqual([]);
  });

  test("extractFrom", () => {
    const reply = "I chose Hono.";
    expect(extractExchange("I prefer tea.", reply, { extractFrom: "user" }).facts).toHaveLength(1);
    expect(extractExchange("I prefer tea.", reply, { extractFrom: "off" }).facts).toEqual([]);
    expect(extractExchange("I prefer tea.", reply, { extractFrom: "both" }).facts).toHaveLength(2);
  });

  test("at most 20 statements and 4,000 characters", () => {
    const many = Array.from({ length: 60 }, (_, at) => `I prefer brand${at}.`).join(" ");
    const result = extractExchange(many, "");
    expect(result.facts).toHaveLength(20);
    expect(result.rejected.capped).toBe(40);
    const long = Array.from({ length: 15 }, (_, at) => `I prefer item ${at} ${"word ".repeat(80)}.`).join(
      " ",
    );
    const total = extractExchange(long, "").facts.reduce((sum, fact) => sum + fact.content.length, 0);
    expect(total).toBeLessThanOrEqual(4000);
  });

  test("secrets stay out", () => {
    const [fact] = extractFacts(
      "Remember that the bot posts with ghp_aaaaBBBB1111aaaaBBBB1111aaaaBBBB1111 on Mondays",
      "user",
    ).facts;
    expect(fact?.content).toBe("Asked to remember: the bot posts with [redacted] on Mondays");
  });
});

describe("changed minds", () => {
  const one = (text: string) => {
    const [fact] = extractFacts(text, "user").facts;
    if (fact === undefined) throw new Error(`nothing in ${text}`);
    return fact;
  };

  test.each([
    ["My deadline is 3 June.", "Actually, it's 5 June, not 3 June.", "Deadline is 5 June"],
    [
      "I'll use MySQL for the shop.",
      "actually it's Postgres not MySQL",
      "Decided to use Postgres for the shop",
    ],
    ["I live in Malmö near the park.", "I moved from Malmö to Lund.", "Lives in Lund"],
    ["I always use npm.", "I switched from npm to pnpm.", "Habit: always use pnpm"],
    [
      "I take 5 mg of ramipril.",
      "I switched from ramipril to losartan 50 mg.",
      "Switched from ramipril to losartan 50 mg",
    ],
    ["Asun Oulussa.", "Muutin Oulusta Turkuun.", "Asuu nyt: Turkuun"],
  ])("%j then %j", (before, after, content) => {
    const known = one(before);
    const fact = one(after);
    expect(fact.correction).toBe(true);
    expect(corrects(fact, known)).toBe(true);
    expect(corrected(fact, known)).toMatchObject({ content, category: known.category });
  });

  test("what ended is denied", () => {
    const known = one("I usually drink coffee.");
    const fact = one("I no longer drink coffee.");
    expect(fact.polarity).toBe("-");
    expect(corrects(fact, known)).toBe(true);
    expect(corrects(fact, one("I usually drink tea."))).toBe(false);
  });

  test("a request to forget meets what it names", () => {
    const [forget] = extractFacts("forget that I live in Berlin", "user").forgets;
    if (forget === undefined) throw new Error("no request");
    expect(matchesForget(forget, one("I live in Berlin."))).toBe(true);
    expect(matchesForget(forget, one("I live in Bern."))).toBe(false);
  });
});

describe("near-duplicates", () => {
  test.each([
    ["Prefers the dark mode", "prefers dark mode", true],
    ["Waters the plants on Monday", "Waters the plants on Tuesday", false],
    ["Flies from Helsinki to Berlin", "Flies from Berlin to Helsinki", false],
    ["Likes coffee with milk", "Likes coffee without milk", false],
    ["Does not like Python", "Likes Python", false],
    ["Doesn't eat fish", "Does not eat fish", true],
    ["Uses Python 3.8", "Uses Python 3.9", false],
    ["喜欢茶", "不喜欢茶", false],
  ])("%j and %j: %p", (a, b, same) => {
    expect(nearDuplicate(a, b)).toBe(same);
    expect(nearDuplicate(b, a)).toBe(same);
  });

  test("keys are stable", () => {
    expect(duplicateKey("Prefers databases", "en")).toBe(duplicateKey("prefers the database", "en"));
    expect(slugKey("preference", "Node.js over Deno")).toBe("preference:node_js_over_deno");
    expect(slugKey("identity", "Porto", "home")).toBe("identity:home");
    expect(slugKey("preference", "…")).toMatch(/^preference:[0-9a-f]{8}$/);
    expect(slugKey("preference", "long ".repeat(40)).length).toBeLessThan(90);
  });
});

describe("any text", () => {
  const pieces = fc.constantFrom(
    "I prefer ",
    "I ",
    "my ",
    "is ",
    "not ",
    "forget that ",
    "remember that ",
    "\ud800",
    "\udfff",
    "\0",
    "\u202e",
    "\u200b",
    "שלום ",
    "مرحبا ",
    "我喜欢",
    "好きです",
    "、",
    "ich mag ",
    "je n'aime pas ",
    "'",
    '"',
    "```",
    "> ",
    "<a>",
    "</a>",
    "\n",
    ". ",
    "? ",
    ", ",
    "😀",
  );
  test("never throws, and gives whole statements", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(pieces, fc.string({ unit: "binary", maxLength: 10 })), { maxLength: 50 }),
        (parts) => {
          for (const role of ["user", "assistant"] as const) {
            for (const fact of extractFacts(parts.join(""), role).facts) {
              expect(fact.content.length).toBeGreaterThanOrEqual(3);
              expect(fact.content.length).toBeLessThanOrEqual(500);
              expect(fact.content.isWellFormed()).toBe(true);
              expect(fact.key.length).toBeLessThanOrEqual(200);
            }
          }
        },
      ),
      { numRuns: 120 },
    );
  }, 60_000);

  test("ten thousand sentences, a megabyte on one line, and the end of both is read", () => {
    const sentences = `${"The log is fine. ".repeat(10_000)}I prefer oolong.`;
    expect(extractFacts(sentences, "user").facts).toMatchObject([{ value: "oolong" }]);
    const line = `${"x".repeat(1_000_000)}. I prefer oolong.`;
    expect(extractFacts(line, "user").facts).toMatchObject([{ value: "oolong" }]);
    expect(extractFacts(`I prefer tea. ${"The log is fine. ".repeat(10_000)}`, "user").facts).toEqual([]);
  }, 60_000);

  // Each of these makes a careless pattern take minutes; the suite's own limit is what would fail.
  test.each([
    "I ",
    "'a ",
    '"',
    "my a is ",
    "when I say ",
    "I really ",
    "我从",
    "私は",
    "好きですが、",
    "ich habe mich für ",
    "en ole ",
    "<a ",
    "it's a not ",
    "A: b\n",
    "password is ",
    "a-",
  ])(
    "64 KiB of %j",
    (piece) => {
      const text = piece.repeat(Math.ceil(65_536 / piece.length)).slice(0, 65_536);
      expect(extractFacts(text, "user").facts.length).toBeLessThanOrEqual(3);
    },
    10_000,
  );
});
