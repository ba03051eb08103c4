/** `/openapi.json`, and `/docs`: the same as a page, with its style sheet inside the program. */
import type { Hono } from "hono";
import type { Env } from "../auth.ts";
import styles from "../../views/docs.css" with { type: "text" };
import { DocsPage } from "../../views/docs.tsx";
import type { Document } from "./document.ts";

const policy =
  "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** `make` is called once, when somebody first asks. */
export function mountDocs(app: Hono<Env>, make: () => Document): void {
  let made: Document | null = null;
  const document = () => (made ??= make());
  app.get("/openapi.json", (c) => c.json(document()));
  app.get("/docs", (c) =>
    c.html(<DocsPage document={document()} />, 200, { "Content-Security-Policy": policy }),
  );
  app.get("/docs/docs.css", (c) =>
    c.body(styles, 200, { "Content-Type": "text/css; charset=utf-8", "Cache-Control": "max-age=3600" }),
  );
}
