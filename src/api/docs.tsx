/** `/openapi.json`, and `/docs`: the same as a page, with its style sheet inside the program. */
import { html } from "hono/html";
import { z } from "zod";
import styles from "../../views/docs.css" with { type: "text" };
import { DocsPage } from "../../views/docs.tsx";
import type { Document } from "./document.ts";
import { operation, type Operation } from "./operation.ts";

const policy =
  "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
const base = { tag: "Box", method: "get", access: "public" } as const;

/** Both are made once, when somebody first asks. */
export function docsOperations(make: () => Promise<Document>): Operation[] {
  const document = once(make);
  const page = once(async () => String(await html`${<DocsPage document={await document()} />}`));
  return [
    operation({
      ...base,
      path: "/openapi.json",
      summary: "This document",
      answer: z.unknown(),
      handle: () => document(),
    }),
    operation({
      ...base,
      path: "/docs",
      summary: "The same as a page",
      answer: { type: "text/html", description: "a page that loads its own style sheet and nothing else" },
      handle: async () =>
        new Response(await page(), {
          headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy },
        }),
    }),
    operation({
      ...base,
      path: "/docs/docs.css",
      summary: "The style sheet of the page",
      answer: { type: "text/css", description: "a style sheet" },
      handle: () =>
        new Response(styles, {
          headers: { "Content-Type": "text/css; charset=utf-8", "Cache-Control": "max-age=3600" },
        }),
    }),
  ];
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make());
}
