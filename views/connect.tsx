/** From zero to a first recall: the first page of a new box, and settings to copy for every client. */
import { type ClientId, clients, type Connection, snippetOf } from "./clients.ts";
import { Dot, Ledger } from "./figures.tsx";
import { count, cut, href, num } from "./format.ts";
import { Icon } from "./icons.tsx";
import { type Chrome, Page } from "./layout.tsx";
import { Banner, Code, CopyLine, Head, Tabs, Text } from "./parts.tsx";
import { reasonText } from "./receipt.tsx";
import { receiptHref } from "./receipts.tsx";

export const shown: readonly ClientId[] = ["curl", "python", "node", "openwebui"];

export const Snippet = ({
  connection,
  client: chosen,
  all,
  base,
}: {
  connection: Connection;
  client: ClientId;
  /** Every client, or the four of the first page. */
  all: boolean;
  base: string;
}) => {
  const client = clients.find((one) => one.id === chosen) ?? clients[0]!;
  const list = all ? clients : clients.filter((one) => shown.includes(one.id));
  return (
    <div class="stack" id="snippet">
      <Tabs
        label="Example for"
        small
        current={client.id}
        items={[
          ...list.map((one) => ({ id: one.id, text: one.name, href: href(base, { client: one.id }) })),
          ...(all ? [] : [{ id: "more", text: "Something else", href: "/dashboard/connect" }]),
        ]}
      />
      <Code id="snippet-code" head={client.head}>
        {snippetOf(client, connection, `${connection.keyPrefix ?? "rk-"}…`)}
      </Code>
      {client.note ? <p class="note">{client.note}</p> : null}
    </div>
  );
};

/** Asks every two seconds until a request came; then it stays and says what was added. */
export const FirstRequest = ({ connection }: { connection: Connection }) => {
  const { first, since } = connection;
  if (!first) {
    return (
      <div
        class="banner"
        id="first-request"
        hx-get={href("/dashboard/welcome/first-request", { since })}
        hx-trigger="every 2s"
      >
        <Dot state="busy" />
        <p>Waiting for the first request. It appears here by itself.</p>
      </div>
    );
  }
  return (
    <div class="banner banner-accent" id="first-request">
      <Icon name="check" />
      <p dir="auto">
        <b>{first.injected > 0 ? "It remembered." : "The first request came through."}</b>{" "}
        <Text text={first.query ? `“${cut(first.query, 80)}”` : "A request without text"} /> got{" "}
        {first.injected > 0
          ? `${count(first.injected, "memory", "memories")}, ${count(first.tokens, "token")}`
          : reasonText(first.reason)}
        .
      </p>
      <a class="btn btn-sm" href={receiptHref(first.id)}>
        Open the receipt
      </a>
      <a
        class="btn btn-sm btn-quiet"
        href={href("/dashboard/connect", {})}
        hx-get={href("/dashboard/welcome/first-request", { since: Date.now() })}
        hx-target="#first-request"
      >
        Wait for the next
      </a>
    </div>
  );
};

const Flow = () => (
  <svg
    class="flow"
    viewBox="0 0 304 216"
    role="img"
    aria-label="Your application talks to Recollect. Recollect adds what it remembers, sends the request to your provider, and learns from the reply."
  >
    <rect x="102" y="1" width="100" height="36" rx="6" />
    <text class="mid" x="152" y="23">
      Application
    </text>
    <rect class="flow-main" x="102" y="89" width="100" height="40" rx="6" />
    <text class="flow-main-text mid" x="152" y="113">
      Recollect
    </text>
    <rect x="102" y="179" width="100" height="36" rx="6" />
    <text class="mid" x="152" y="201">
      Provider
    </text>
    <path d="M140 37v46" />
    <path class="flow-head" d="M136.5 81h7l-3.5 7z" />
    <path d="M164 89V43" />
    <path class="flow-head" d="M160.5 45h7l-3.5-7z" />
    <path class="flow-ink" d="M140 129v44" />
    <path class="flow-head" d="M136.5 171h7l-3.5 7z" />
    <path d="M164 179v-44" />
    <path class="flow-head" d="M160.5 137h7l-3.5-7z" />
    <text class="flow-note end" x="128" y="65">
      asks
    </text>
    <text class="flow-note" x="178" y="65">
      reply, untouched
    </text>
    <text class="flow-note end" x="128" y="156">
      adds memories
    </text>
    <text class="flow-note" x="178" y="156">
      learns from it
    </text>
  </svg>
);

const KeyField = ({ connection }: { connection: Connection }) => (
  <div class="field">
    <span class="label">API key</span>
    <div class="copy-line">
      <code>{connection.keyPrefix ? `${connection.keyPrefix}•••••••••` : "no key yet"}</code>
      <a class="btn btn-quiet btn-sm" href="/dashboard/settings/keys/new">
        New key
      </a>
    </div>
  </div>
);

const Where = ({ connection }: { connection: Connection }) => (
  <div class="fields">
    <div class="field">
      <span class="label">Base URL</span>
      <CopyLine id="base-url" text={`${connection.origin}/v1`} label="Copy the base URL" />
    </div>
    <KeyField connection={connection} />
  </div>
);

export interface WelcomeProps {
  chrome: Chrome;
  connection: Connection;
  client: ClientId;
  maxTokens: number;
}

type StepState = "done" | "current" | "later";

const stepClass = (state: StepState): string =>
  state === "done" ? "step is-done" : state === "current" ? "step is-current" : "step";

/** The steps; turning memory on answers with them again. */
export const Steps = ({ chrome, connection, client }: Omit<WelcomeProps, "maxTokens">) => {
  const on = chrome.memoryOn;
  const served = on && connection.hasProvider;
  return (
    <ol class="steps" id="steps">
      <li class={stepClass(on ? "done" : "current")}>
        <div class="step-body">
          <h2>{on ? "Memory is on" : "Turn memory on"}</h2>
          <p>
            {on
              ? "Requests get what is relevant, and new statements are learned."
              : "It is off because it adds tokens to requests, and your provider may bill them. You set the limit, and every request shows what was added."}
          </p>
          {on ? null : (
            <form
              class="form-foot"
              method="post"
              action="/dashboard/settings/memory/enabled"
              hx-post="/dashboard/settings/memory/enabled"
              hx-target="#steps"
            >
              <input type="hidden" name="from" value="welcome" />
              <button class="btn btn-primary btn-lg" name="enabled" value="true">
                Turn memory on
              </button>
              <a class="btn btn-quiet btn-lg" href="/dashboard/settings/memory">
                Look at the settings first
              </a>
            </form>
          )}
        </div>
      </li>
      <li class={stepClass(connection.hasProvider ? "done" : on ? "current" : "later")}>
        <div class="step-body">
          <h2>{connection.hasProvider ? "There is a provider" : "Add a provider"}</h2>
          {connection.hasProvider ? (
            <p>
              Requests go to <code>{connection.model.split("/")[0]}</code>.{" "}
              <a href="/dashboard/settings/providers">Add or test another</a>.
            </p>
          ) : (
            <>
              <p>
                The server with the models: Ollama on this machine, OpenAI, or anything that speaks the same.
              </p>
              <div class="form-foot">
                <a class="btn" href="/dashboard/settings/providers">
                  <Icon name="plus" />
                  Add a provider
                </a>
              </div>
            </>
          )}
        </div>
      </li>
      <li class={stepClass(connection.first ? "done" : served ? "current" : "later")}>
        <div class="step-body">
          <h2>Connect a client</h2>
          <p>Change two things in any client that speaks the OpenAI API: the base URL and the key.</p>
          <Where connection={connection} />
          <Snippet connection={connection} client={client} all={false} base="/dashboard/memory" />
          <p class="note">
            The key was printed when the server first started and is not shown again. Lost it? Make a new one.
          </p>
        </div>
      </li>
      <li class={stepClass(connection.first ? "current" : "later")}>
        <div class="step-body">
          <h2>See it remember</h2>
          <FirstRequest connection={connection} />
        </div>
      </li>
    </ol>
  );
};

export const WelcomePage = ({ chrome, connection, client, maxTokens }: WelcomeProps) => (
  <Page title="Welcome" current="memories" chrome={chrome}>
    <Head
      title="Give your applications a memory"
      sub="Recollect sits between a client and its model, and puts what matters into the next prompt."
    />
    <div class="split">
      <Steps chrome={chrome} connection={connection} client={client} />
      <aside class="split-aside stack stack-lg" aria-label="How it works">
        <div class="panel panel-pad">
          <Flow />
        </div>
        <div>
          <div class="block-head">
            <h2>What it costs</h2>
          </div>
          <Ledger
            rows={[
              ["A request where nothing fits", "0 tokens"],
              ["A typical request", "80–200 tokens"],
              ["The most, with your settings", `${num(maxTokens)} tokens`],
              ["Time added", "about 2 ms"],
            ]}
          />
        </div>
      </aside>
    </div>
  </Page>
);

export const ConnectPage = ({ chrome, connection, client }: Omit<WelcomeProps, "maxTokens">) => (
  <Page title="Connect" current={null} chrome={chrome}>
    <Head
      title="Connect a client"
      sub="Any client that speaks the OpenAI or Anthropic API: change its address and key."
    />
    {connection.hasProvider ? null : (
      <Banner kind="warn">
        <p>
          <b>There is no provider.</b> Requests have nowhere to go yet.
        </p>
        <a class="btn btn-sm" href="/dashboard/settings/providers">
          Add a provider
        </a>
      </Banner>
    )}
    {chrome.memoryOn ? null : (
      <Banner kind="warn">
        <p>
          <b>Memory is off.</b> Requests pass through, nothing is learned or recalled.
        </p>
        <a class="btn btn-sm" href="/dashboard/settings/memory">
          Turn it on
        </a>
      </Banner>
    )}
    <div class="stack stack-lg">
      <section class="panel panel-pad" aria-label="Address and key">
        <Where connection={connection} />
      </section>
      <Snippet connection={connection} client={client} all base="/dashboard/connect" />
      <section aria-labelledby="live-h">
        <div class="block-head">
          <h2 id="live-h">First request</h2>
        </div>
        <FirstRequest connection={connection} />
      </section>
    </div>
  </Page>
);

/** Said once, when the first request arrives. */
export const arrived = "The first request came through.";
