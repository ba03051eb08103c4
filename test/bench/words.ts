/** Made-up texts: words of a Zipf-like vocabulary around topics, so that common and rare words are about as in speech. */

const syllables =
  "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro ru".split(
    " ",
  );
/** Stop words, for texts that are mostly about nothing. */
export const fillers = "the a of to and in is it that was for on with as at by we you they have not".split(
  " ",
);
const VOCABULARY = 30_000;
const TOPICS = 400;
const TOPIC_WORDS = 60;

export function createWords(seed: number) {
  let state = seed >>> 0 || 1;
  const random = () => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const word = (rank: number) => {
    let made = "";
    for (let rest = rank + 1200; rest > 0; rest = Math.floor(rest / syllables.length))
      made += syllables[rest % syllables.length];
    return made;
  };
  /** Rank r comes up about 1/r as often as the first; the first forty stand for stop words, which no question searches. */
  const any = (least = 0) => {
    for (;;) {
      const rank = Math.floor(VOCABULARY ** random()) - 1;
      if (rank >= least) return word(rank);
    }
  };
  const topical = (topic: number) =>
    word(300 + ((topic * 7919 + Math.floor(TOPIC_WORDS * random()) * 31) % (VOCABULARY - 300)));
  const about = (topic: number, length: number) =>
    Array.from({ length }, () => (random() < 0.4 ? topical(topic) : any())).join(" ");
  return {
    random,
    text: (length: number) => about(Math.floor(random() * TOPICS), length),
    /** A sentence without a topic; 45 words of a hundred are fillers. */
    speech: (length: number) =>
      `${Array.from({ length }, () => (random() < 0.45 ? fillers[Math.floor(random() * fillers.length)]! : any())).join(" ")}.`,
    /** Six words, two of them the topic's. */
    question: () => {
      const topic = Math.floor(random() * TOPICS);
      return [topical(topic), topical(topic), ...Array.from({ length: 4 }, () => any(40))].join(" ");
    },
  };
}
