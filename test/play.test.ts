import { expect, test } from "bun:test";
import { isPlaying } from "../src/extract/play.ts";

const MINUTE = 60_000;
const playing = (...texts: string[]) => {
  const all = texts.map((text, index) => ({ text, at: index * MINUTE }));
  return isPlaying(all.slice(0, -1), all.at(-1)!);
};

test.each([
  "Let’s role-play. You are a smuggler.",
  "can we do a role play where I'm the thief",
  "Lass uns ein Rollenspiel machen",
  "Faisons un jeu de rôle : tu es roi",
  "Hagamos un juego de rol",
  "Facciamo un gioco di ruolo",
  "vamos fazer um roleplay",
  "Laten we een rollenspel doen",
  "Leikitään roolipeliä",
  "我们来角色扮演吧",
  "ロールプレイをしよう",
])("%j opens one", (text) => {
  expect(playing(text, "I live in a tower")).toBe(true);
  expect(playing(text, "I live in a tower", "Stop. Real question", "I live in Bonn")).toBe(false);
});

test.each([
  "I love role-playing games",
  "Ich spiele gern Rollenspiele",
  "What is a role-play exercise?",
  "Act as my nutritionist.",
  "You are a great tutor",
])("%j opens none", (text) => {
  expect(playing(text, "I live in a tower")).toBe(false);
});

test.each([
  "ok, stop",
  "Haha, thanks! I live in Ghent",
  "Well, that was fun. My real name is Bo",
  "ha ha seriously now",
  "Merci, fin du jeu. J'habite à Nice",
  "Jetzt mal ernst: ich wohne in Kiel",
  "Gracias, fin del juego",
  "好，游戏结束",
])("%j leaves it", (text) => {
  expect(playing("Let's do a role-play", "I live in a tower", text)).toBe(false);
});

test.each(["I never stop digging", "Thank you, brave knight", "The end of the road is near my tower"])(
  "%j does not",
  (text) => {
    expect(playing("Let's do a role-play", text)).toBe(true);
  },
);

test("a pause of hours ends it", () => {
  const opened = { text: "Let's role-play.", at: 0 };
  expect(isPlaying([opened], { text: "I live here", at: 10 * MINUTE })).toBe(true);
  expect(isPlaying([opened], { text: "I live here", at: 600 * MINUTE })).toBe(false);
});
