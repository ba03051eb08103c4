/** API keys: who may call, and what each may do. A secret is shown once. */
import type { Child } from "hono/jsx";
import { Cancel, Dialog, DialogLink, Submit } from "./actions.tsx";
import { Dot } from "./figures.tsx";
import { ago, count, cut, day, num, until } from "./format.ts";
import { Icon } from "./icons.tsx";
import type { Chrome } from "./layout.tsx";
import { Code, CopyLine, Disclosure, Empty } from "./parts.tsx";
import { SettingsPage } from "./settings.tsx";

export interface KeyView {
  id: string;
  name: string;
  prefix: string;
  scopes: readonly string[];
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
  revokedAt: string | null;
  memory: "inherit" | "on" | "off";
  maxTokens: number | null;
  models: readonly string[] | null;
  requestsPerMinute: number | null;
  tokensPerDay: number | null;
  sharedPool: boolean;
  userHeader: string | null;
  userField: string | null;
  /** How many active memories its owner has. */
  memories: number | null;
}

export const BASE = "/dashboard/settings/keys";

export const keyHref = (id: string, verb: string) => `${BASE}/${encodeURIComponent(id)}/${verb}`;

const may = (scopes: readonly string[]): string =>
  scopes.length === 3
    ? "everything"
    : scopes
        .map((scope) => ({ "read:memory": "read", "write:memory": "write" })[scope] ?? scope)
        .join(", ") || "nothing";

const soon = (at: string): boolean => Date.parse(at) - Date.now() < 7 * 86_400_000;

/** A new key's secret, the only time it can be seen. */
export const NewSecret = ({
  name,
  secret,
  rotated,
  snippet,
}: {
  name: string;
  secret: string;
  rotated: boolean;
  /** A first request with this very key. */
  snippet: string;
}) => (
  <div class="secret" role="status" id="new-secret">
    <div>
      <h2 class="h-sm" tabindex={-1} autofocus>
        Copy the {rotated ? "new " : ""}key for “{cut(name, 40)}” now
      </h2>
      <p class="hint">It is shown once. If it gets lost, revoke it and make another.</p>
    </div>
    <CopyLine id="new-key" text={secret} label="Copy the key" />
    <Disclosure title="A first request with it">
      <div class="disclosure-body">
        <Code id="new-key-curl" head="Terminal">
          {snippet}
        </Code>
      </div>
    </Disclosure>
  </div>
);

const KeyRow = ({ item, fresh }: { item: KeyView; fresh: boolean }) => (
  <tr>
    <td dir="auto">
      <b class="table-title">{cut(item.name, 60)}</b>
      {fresh ? (
        <>
          {" "}
          <span class="chip chip-accent">new</span>
        </>
      ) : null}
      {item.memory === "inherit" ? null : <span class="table-sub">memory always {item.memory}</span>}
      {item.userHeader || item.userField ? (
        <span class="table-sub">many people, by {item.userHeader ?? item.userField}</span>
      ) : null}
    </td>
    <td class="nowrap" data-label="Key">
      <code>{item.prefix}</code>
    </td>
    <td class="nowrap" data-label="May">
      {may(item.scopes)}
    </td>
    <td class="num" data-label="Memories">
      {item.memories === null ? "–" : num(item.memories)}
    </td>
    <td class="nowrap" data-label="Last used">
      {item.lastUsedAt ? ago(item.lastUsedAt) : "never"}
    </td>
    <td class="nowrap" data-label="Expires">
      {!item.expiresAt ? (
        "never"
      ) : soon(item.expiresAt) ? (
        <span class="inline warn">
          <Dot state="warn" />
          {until(item.expiresAt)}
        </span>
      ) : (
        until(item.expiresAt)
      )}
    </td>
    <td>
      <div class="actions">
        <DialogLink class="btn btn-quiet btn-sm" to={keyHref(item.id, "edit")} label={`Edit ${item.name}`}>
          Edit
        </DialogLink>
        <DialogLink
          class="btn btn-quiet btn-sm"
          to={keyHref(item.id, "rotate")}
          label={`Rotate ${item.name}`}
        >
          Rotate…
        </DialogLink>
        <DialogLink
          class="btn btn-quiet btn-sm"
          to={keyHref(item.id, "revoke")}
          label={`Revoke ${item.name}`}
        >
          Revoke…
        </DialogLink>
      </div>
    </td>
  </tr>
);

export interface KeysProps {
  chrome: Chrome;
  counts: { keys: number; providers: number };
  keys: readonly KeyView[];
  secret?: { id: string; name: string; secret: string; rotated: boolean; snippet: string } | null;
  dialog?: Child;
}

export const KeysPage = ({ chrome, counts, keys, secret, dialog }: KeysProps) => {
  const live = keys.filter((item) => !item.revokedAt);
  const revoked = keys.filter((item) => item.revokedAt);
  return (
    <SettingsPage chrome={chrome} tab="keys" title="API keys" counts={counts} dialog={dialog}>
      {secret ? <NewSecret {...secret} /> : null}
      <div class="block-head">
        <h2>API keys</h2>
        <DialogLink class="btn btn-primary btn-sm" to={`${BASE}/new`}>
          <Icon name="plus" />
          New key
        </DialogLink>
      </div>
      <p class="note lead">
        Each client gets its own key. A key owns its memories and cannot see those of another.
      </p>
      {live.length === 0 ? (
        <section class="panel" aria-label="Keys">
          <Empty title="There is no key" level={3}>
            <p>Clients need one to come in.</p>
          </Empty>
        </section>
      ) : (
        <div class="table-wrap">
          <table class="table table-stack">
            <thead>
              <tr>
                <th>Name</th>
                <th>Key</th>
                <th>May</th>
                <th class="num">Memories</th>
                <th>Last used</th>
                <th>Expires</th>
                <th>
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {live.map((item) => (
                <KeyRow item={item} fresh={item.id === secret?.id && !secret.rotated} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {revoked.length > 0 ? (
        <Disclosure title={`${count(revoked.length, "revoked key")}`} class="gap-top">
          <ul class="disclosure-body dropped">
            {revoked.map((item) => (
              <li dir="auto">
                {cut(item.name, 60)}
                <span class="reason">
                  revoked on {day(item.revokedAt!)}
                  {item.memories ? `, ${count(item.memories, "memory", "memories")} kept` : ""}
                </span>
                {item.memories ? (
                  <DialogLink class="btn btn-quiet btn-sm" to={keyHref(item.id, "forget")}>
                    Delete its memories…
                  </DialogLink>
                ) : null}
              </li>
            ))}
          </ul>
        </Disclosure>
      ) : null}
    </SettingsPage>
  );
};

const Ask = ({
  title,
  item,
  verb,
  danger,
  button,
  children,
}: {
  title: string;
  item: KeyView;
  verb: string;
  danger: boolean;
  button: string;
  children: Child;
}) => (
  <Dialog
    id={verb}
    title={title}
    small
    close={BASE}
    form={{ action: keyHref(item.id, verb) }}
    foot={
      <>
        <Cancel to={BASE} focus />
        <Submit kind={danger ? "danger" : "primary"}>{button}</Submit>
      </>
    }
  >
    {children}
  </Dialog>
);

export const RotateDialog = ({ item }: { item: KeyView }) => (
  <Ask title={`Rotate “${cut(item.name, 40)}”?`} item={item} verb="rotate" danger={false} button="Rotate">
    <p class="prose">
      A new secret is made and shown once; <code>{item.prefix}</code> stops working at once. The memories
      stay.
    </p>
  </Ask>
);

export const RevokeDialog = ({ item }: { item: KeyView }) => (
  <Ask title={`Revoke “${cut(item.name, 40)}”?`} item={item} verb="revoke" danger button="Revoke">
    <p class="prose">
      Clients that use <code>{item.prefix}</code> are refused from now on. Its memories stay unless you take
      them along.
    </p>
    <label class="inline">
      <input type="checkbox" name="memories" value="true" /> Delete{" "}
      {item.memories ? `its ${count(item.memories, "memory", "memories")}` : "its memories"} for good, too
    </label>
  </Ask>
);

export const ForgetKeyDialog = ({ item }: { item: KeyView }) => (
  <Ask
    title={`Delete what “${cut(item.name, 40)}” left?`}
    item={item}
    verb="forget"
    danger
    button="Delete for good"
  >
    <p class="prose">
      {item.memories ? count(item.memories, "memory", "memories") : "Its memories"}, with histories, exchanges
      and index rows, are deleted for good. This cannot be undone.
    </p>
  </Ask>
);
