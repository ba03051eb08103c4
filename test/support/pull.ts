/** `bun test/support/pull.ts DIR ENDPOINT`: pulls the static model without looking at free space first; prints how it went. */
import { createModels } from "../../src/embed/models.ts";
import { STATIC_REPO, TRANSFORMERS_REPO } from "./models.ts";

const [dir = "", endpoint = ""] = process.argv.slice(2);
const models = createModels({
  modelsDir: dir,
  dataDir: dir,
  repos: { static: STATIC_REPO, transformers: TRANSFORMERS_REPO },
  hub: { endpoint, token: null, retryMs: 1 },
  freeBytes: () => null,
});
const error = await models.pull("static").then(
  () => "it worked",
  (thrown: Error) => thrown.message,
);
process.stdout.write(JSON.stringify({ error, ...models.status("static") }));
