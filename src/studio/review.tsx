/** `/dashboard/memory/review`: the inbox, one by one or many at once. */
import type { Hono } from "hono";
import type { Env } from "../auth.ts";
import { AppError } from "../error.ts";
import { ReviewPage, ReviewPart, type ReviewProps } from "../../views/review.tsx";
import { chromeOf, finish, isPart, ownersOf, readForm, show, type StudioDeps } from "./context.tsx";

const SHOWN = 20;

export function reviewRoutes(app: Hono<Env>, deps: StudioDeps): void {
  const { memories, related, conversations } = deps.engine;

  const read = async (): Promise<ReviewProps> => {
    const { data, total } = await memories.list({ owner: null, status: "pending", limit: SHOWN, offset: 0 });
    const [held, episodes] = await Promise.all([
      related.holders({ owner: null, ids: data.map((memory) => memory.id) }),
      Promise.all(
        data.map((memory) =>
          memory.episodeId === null
            ? Promise.resolve(null)
            : conversations.getEpisode({ owner: null, id: memory.episodeId }).catch(() => null),
        ),
      ),
    ]);
    const items = data.map((memory, i) => ({
      memory,
      episode: episodes[i] ?? null,
      replaces: held[memory.id] ?? null,
    }));
    return { items, total, owners: ownersOf(deps) };
  };

  app.get("/dashboard/memory/review", async (c) => {
    const [chrome, props] = await Promise.all([chromeOf(c, deps), read()]);
    return show(c, <ReviewPage chrome={chrome} {...props} />);
  });

  app.post("/dashboard/memory/review", async (c) => {
    const { fields, all } = await readForm(c);
    const single = fields["approve"] ?? fields["reject"];
    const action = fields["approve"] ? "approve" : fields["reject"] ? "reject" : fields["action"];
    if (action !== "approve" && action !== "reject")
      throw new AppError("invalid_request", "Approve or reject.");
    const ids = single ? [single] : [...new Set(all("id"))].slice(0, 500);
    if (ids.length === 0) return finish(c, { code: "nothing-selected" });
    const { done } = await memories.review({ owner: null, ids, action });
    const told = { code: action === "approve" ? "approved" : "rejected", n: done };
    if (!isPart(c)) return finish(c, told, { to: "/dashboard/memory/review" });
    return finish(c, told, { main: <ReviewPart {...await read()} /> });
  });
}
