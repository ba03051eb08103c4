/** The reference at `/docs`: the OpenAPI document as a page that needs no script. */
import { html } from "hono/html";
import type { Document, PathItem } from "../src/api/document.ts";
import type { JsonSchema } from "../src/schemas/json-schema.ts";

export function DocsPage({ document }: { document: Document }) {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, item]) => ({ path, method, item })),
  );
  const tags = [...Map.groupBy(operations, ({ item }) => item.tags[0] ?? "Other")];
  return (
    <>
      {html`<!doctype html>`}
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <title>{`${document.info.title} API`}</title>
          <link rel="stylesheet" href="/docs/docs.css" />
        </head>
        <body>
          <nav aria-label="Sections">
            <strong>{document.info.title} API</strong>
            <ul>
              {tags.map(([tag]) => (
                <li>
                  <a href={`#${anchor(tag)}`}>{tag}</a>
                </li>
              ))}
              <li>
                <a href="#schemas">Schemas</a>
              </li>
            </ul>
          </nav>
          <main>
            <Introduction document={document} />
            {tags.map(([tag, group]) => (
              <section id={anchor(tag)}>
                <h2>{tag}</h2>
                {group.map(({ path, method, item }) => (
                  <Operation path={path} method={method} item={item} />
                ))}
              </section>
            ))}
            <section id="schemas">
              <h2>Schemas</h2>
              {Object.entries(document.components.schemas).map(([name, schema]) => (
                <article id={`schema-${name}`}>
                  <h3>{name}</h3>
                  <Fields schema={schema} />
                </article>
              ))}
            </section>
          </main>
        </body>
      </html>
    </>
  );
}

function Introduction({ document }: { document: Document }) {
  return (
    <header>
      <h1>{document.info.title} API</h1>
      <p>
        {document.info.description} Version {document.info.version}. The same as a machine reads it:{" "}
        <a href="/openapi.json">openapi.json</a>.
      </p>
      <p>
        Send an API key or the management token as <code>Authorization: Bearer …</code>. An API key sees its
        own rows only; with the management token lists span all owners unless <code>apiKeyId</code> narrows
        them, and ranked reads and writes must name one. Every error has one shape, with each wrong field in{" "}
        <code>error.details</code>.
      </p>
      <pre>
        {
          '{"error":{"message":"…","type":"…","code":"…","param":null,"details":[{"field":"…","message":"…"}]}}'
        }
      </pre>
    </header>
  );
}

function Operation({ path, method, item }: { path: string; method: string; item: PathItem }) {
  const [good = ["200", { description: "" }]] = Object.entries(item.responses);
  const body = item.requestBody;
  return (
    <details class="operation" id={item.operationId}>
      <summary>
        <code class={`method ${method}`}>{method.toUpperCase()}</code> <code>{path}</code>
        <span>
          <Prose text={item.summary} />
        </span>
      </summary>
      {item.description && (
        <p>
          <Prose text={item.description} />
        </p>
      )}
      <p class="access">{access(item["x-access"])}</p>
      {item.parameters.length > 0 && (
        <>
          <h4>Parameters</h4>
          <table>
            <tbody>
              {item.parameters.map((parameter) => (
                <tr>
                  <th scope="row">
                    <code>{parameter.name}</code>
                    {parameter.required && <em> required</em>}
                  </th>
                  <td>
                    <Type schema={parameter.schema} /> in {parameter.in}
                    {parameter.description && (
                      <p>
                        <Prose text={parameter.description} />
                      </p>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      {body && (
        <>
          <h4>Body{body.required ? "" : " (may be absent)"}</h4>
          {body.description && (
            <p>
              <Prose text={body.description} />
            </p>
          )}
          {Object.entries(body.content).map(([type, { schema }]) => (
            <>
              <p>
                <code>{type}</code>
              </p>
              {schema && <Fields schema={schema} asked />}
            </>
          ))}
        </>
      )}
      <h4>Answer {good[0]}</h4>
      {Object.entries(good[1].content ?? {}).map(([type, { schema }]) =>
        schema ? <Fields schema={schema} /> : <p>{`${type}: ${good[1].description}`}</p>,
      )}
      <h4>Errors</h4>
      <ul>
        {Object.entries(item.responses)
          .filter(([status]) => status >= "400")
          .map(([status, { description }]) => (
            <li>
              <code>{status}</code> {description}
            </li>
          ))}
      </ul>
    </details>
  );
}

/** `asked`: of a request, where it matters which fields must be there. */
function Fields({ schema, asked = false }: { schema: JsonSchema; asked?: boolean }) {
  const required = schema.required ?? [];
  if (!schema.properties) {
    return (
      <p>
        <Type schema={schema} />
      </p>
    );
  }
  return (
    <table>
      <tbody>
        {Object.entries(schema.properties).map(([name, property]) => (
          <tr>
            <th scope="row">
              <code>{name}</code>
              {asked && required.includes(name) && <em> required</em>}
            </th>
            <td>
              <Type schema={property} />
              {typeof property.description === "string" && (
                <p>
                  <Prose text={property.description} />
                </p>
              )}
              {property.properties && <Fields schema={property} asked={asked} />}
              {property.items?.properties && <Fields schema={property.items} asked={asked} />}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Text with names in back-quotes. */
function Prose({ text }: { text: string }) {
  return <>{text.split("`").map((part, at) => (at % 2 === 1 ? <code>{part}</code> : part))}</>;
}

function Type({ schema }: { schema: JsonSchema }) {
  if (schema.$ref) {
    const name = schema.$ref.split("/").at(-1)!;
    return <a href={`#schema-${name}`}>{name}</a>;
  }
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) {
    return (
      <>
        {alternatives.map((one, at) => (
          <>
            {at > 0 && " or "}
            <Type schema={one} />
          </>
        ))}
        <Limits schema={schema} />
      </>
    );
  }
  if (schema.type === "array" && schema.items) {
    return (
      <>
        list of <Type schema={schema.items} />
        <Limits schema={schema} />
      </>
    );
  }
  return (
    <>
      {schema.const === undefined ? (schema.format ?? schema.type ?? "any") : JSON.stringify(schema.const)}
      <Limits schema={schema} />
    </>
  );
}

function Limits({ schema }: { schema: JsonSchema }) {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const parts = [
    Array.isArray(schema.enum) ? schema.enum.join(", ") : "",
    range(minimum, maximum, ""),
    range(minLength, maxLength, " characters"),
    range(minItems, maxItems, " items"),
    schema.default === undefined ? "" : `default ${JSON.stringify(schema.default)}`,
  ].filter(Boolean);
  return <>{parts.length > 0 && <small> {parts.join("; ")}</small>}</>;
}

function range(low: unknown, high: unknown, unit: string): string {
  if (typeof low !== "number" && typeof high !== "number") return "";
  if (typeof low !== "number") return `at most ${Number(high)}${unit}`;
  return typeof high === "number" ? `${low}–${high}${unit}` : `at least ${low}${unit}`;
}

function access(rule: string): string {
  switch (rule) {
    case "public":
      return "Needs no credentials.";
    case "local":
      return "From this machine, or with the management token.";
    case "management":
      return "Needs the management token.";
    default:
      return `Needs an API key with the scope ${rule}, or the management token.`;
  }
}

function anchor(tag: string): string {
  return tag.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}
