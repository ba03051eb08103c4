/** Named things and how they are linked: a list, a small graph drawn on the server, and a table that says the same. */
import type { Child } from "hono/jsx";
import type { Entity } from "../src/memory/types.ts";
import { Cancel, Dialog, DialogLink, Submit } from "./actions.tsx";
import { type ActivityFrame, ActivityPage, ListAndDetail } from "./activity.tsx";
import { type Errors, FormErrors, InputField, TextareaField } from "./fields.tsx";
import { count, cut, day, href, num } from "./format.ts";
import { type GraphEdge, RelationGraph } from "./graph.tsx";
import { Icon } from "./icons.tsx";
import { Empty, Pager, Text, voice } from "./parts.tsx";

export interface EntityLine extends Entity {
  links: number | null;
}

export interface Link {
  fromId: number;
  from: string;
  toId: number;
  to: string;
  label: string;
  createdAt: string;
}

export interface EntityDetail extends EntityLine {
  relationships: readonly Link[];
}

const BASE = "/dashboard/activity/entities";
export const entityHref = (id: number, query: Record<string, string | number | null> = {}): string =>
  href(`${BASE}/${id}`, query);

const Links = ({ entity }: { entity: EntityDetail }) => (
  <div class="table-wrap">
    <table class="table">
      <caption class="visually-hidden">Relationships of {entity.name}</caption>
      <thead>
        <tr>
          <th>From</th>
          <th>Label</th>
          <th>To</th>
          <th class="num hide-sm">First seen</th>
        </tr>
      </thead>
      <tbody>
        {entity.relationships.slice(0, 200).map((link) => (
          <tr>
            <td dir="auto">
              {link.fromId === entity.id ? (
                <Text text={cut(link.from, 60)} />
              ) : (
                <a href={entityHref(link.fromId)}>
                  <Text text={cut(link.from, 60)} />
                </a>
              )}
            </td>
            <td class="muted" dir="auto">
              <Text text={cut(link.label, 60)} />
            </td>
            <td dir="auto">
              {link.toId === entity.id ? (
                <Text text={cut(link.to, 60)} />
              ) : (
                <a href={entityHref(link.toId)}>
                  <Text text={cut(link.to, 60)} />
                </a>
              )}
            </td>
            <td class="num hide-sm">{day(link.createdAt)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

export const aliasesOf = (entity: Entity): string => {
  const aliases = entity.metadata["aliases"];
  return Array.isArray(aliases) ? aliases.filter((alias) => typeof alias === "string").join(", ") : "";
};

const Detail = ({ entity }: { entity: EntityDetail }) => {
  const edges: GraphEdge[] = entity.relationships.map((link) => ({
    from: { id: link.fromId, name: link.from },
    to: { id: link.toId, name: link.to },
    label: link.label,
  }));
  const aliases = aliasesOf(entity);
  return (
    <section class="stack" aria-labelledby="e-h">
      <div class="block-head block-head-lg">
        <div>
          <h2 id="e-h" dir="auto">
            <Text text={cut(entity.name, 120)} />
          </h2>
          <p class="note">
            {entity.type}, first seen {day(entity.createdAt)}
            {aliases ? `, also ${cut(aliases, 120)}` : ""}
          </p>
        </div>
        <div class="actions">
          <DialogLink class="btn btn-sm" to={`${entityHref(entity.id)}/edit`}>
            <Icon name="edit" />
            Edit
          </DialogLink>
          <DialogLink class="btn btn-sm btn-danger-quiet" to={`${entityHref(entity.id)}/delete`}>
            <Icon name="trash" />
            Delete…
          </DialogLink>
        </div>
      </div>
      {entity.notes ? (
        <p class="panel panel-pad whole-text" {...voice(entity.notes)}>
          <Text text={cut(entity.notes, 2000)} />
        </p>
      ) : null}
      {edges.length > 0 ? (
        <>
          <div class="panel panel-pad">
            <RelationGraph
              main={{ id: entity.id, name: entity.name }}
              edges={edges}
              hrefOf={(id) => entityHref(id)}
            />
          </div>
          <Links entity={entity} />
        </>
      ) : (
        <p class="panel panel-pad note">It is not linked to anything yet.</p>
      )}
    </section>
  );
};

export interface EntitiesProps {
  frame: ActivityFrame;
  rows: readonly EntityLine[];
  total: number;
  from: number;
  page: number;
  q: string;
  chosen: EntityDetail | null;
  asked: boolean;
  dialog?: Child;
}

export const EntityPick = ({
  frame,
  rows,
  total,
  from,
  page,
  q,
  chosen,
}: Omit<EntitiesProps, "asked" | "dialog">) => (
  <div id="entity-pick">
    {rows.length === 0 ? (
      <p class="panel-pad note">{q ? `Nothing is called “${cut(q, 40)}”.` : "Nothing here."}</p>
    ) : (
      <ul class="pick">
        {rows.map((entity) => (
          <li>
            <a
              href={entityHref(entity.id, { owner: frame.owner, q, page: page > 1 ? page : null })}
              {...(entity.id === chosen?.id ? { "aria-current": "true" } : {})}
            >
              <span dir="auto">
                <Text text={cut(entity.name, 60)} />
              </span>
              <span class="table-sub">
                <span>{cut(entity.type, 40)}</span>
                {entity.links === null ? null : <span class="push num">{count(entity.links, "link")}</span>}
              </span>
            </a>
          </li>
        ))}
      </ul>
    )}
    {total > rows.length ? (
      <Pager
        label="Pages of entities"
        from={from}
        shown={rows.length}
        total={total}
        to={(by) => href(BASE, { owner: frame.owner, q, page: page + by > 1 ? page + by : null })}
      />
    ) : null}
  </div>
);

export const EntitiesPage = (props: EntitiesProps) => {
  const { frame, rows, q, chosen, asked, dialog } = props;
  return (
    <ActivityPage
      frame={frame}
      tab="entities"
      title={chosen && asked ? cut(chosen.name, 60) : "Entities"}
      dialog={dialog}
    >
      {rows.length === 0 && !q && !chosen ? (
        <section class="panel" aria-label="Entities">
          <Empty
            title="No entity is known yet"
            actions={
              <a class="btn" href="/dashboard/settings/memory#s-learn">
                Open the settings
              </a>
            }
          >
            <p>
              People, projects and places appear here when “Learn who and what” is on, or when a client writes
              them.
            </p>
          </Empty>
        </section>
      ) : (
        <ListAndDetail
          detail={asked}
          back={{ href: href(BASE, { owner: frame.owner }), text: "All entities" }}
          side={
            <nav class="panel cols-side" aria-label="Entities">
              <form
                class="panel-pad panel-search"
                role="search"
                aria-label="Entities"
                method="get"
                action={BASE}
                hx-get={BASE}
                hx-trigger="submit, input delay:300ms"
                hx-target="#entity-pick"
                hx-sync="this:replace"
              >
                {frame.owner ? <input type="hidden" name="owner" value={frame.owner} /> : null}
                <label class="search">
                  <span class="visually-hidden">Search entities</span>
                  <Icon name="search" />
                  <input
                    class="input"
                    id="entity-q"
                    type="search"
                    name="q"
                    value={q}
                    placeholder="Search entities"
                    autocomplete="off"
                    maxlength={200}
                  />
                  <span class="spinner" />
                </label>
              </form>
              <EntityPick {...props} />
            </nav>
          }
        >
          {chosen ? <Detail entity={chosen} /> : null}
        </ListAndDetail>
      )}
    </ActivityPage>
  );
};

export const EditEntityDialog = ({
  entity,
  notes,
  aliases,
  errors,
}: {
  entity: Entity;
  notes: string;
  aliases: string;
  errors: Errors;
}) => {
  const field = { form: "entity", errors };
  return (
    <Dialog
      id="entity"
      title={`Edit ${cut(entity.name, 60)}`}
      small
      close={entityHref(entity.id)}
      form={{ action: `${entityHref(entity.id)}/edit` }}
      foot={
        <>
          <Cancel to={entityHref(entity.id)} />
          <Submit>Save</Submit>
        </>
      }
    >
      <FormErrors form="entity" errors={errors} labels={{ notes: "Notes", aliases: "Also called" }} />
      <TextareaField
        {...field}
        name="notes"
        label="Notes"
        value={notes}
        more={{ autofocus: true, dir: "auto" }}
      />
      <InputField
        {...field}
        name="aliases"
        label="Also called"
        optional="separated by commas"
        value={aliases}
      />
    </Dialog>
  );
};

export const DeleteEntityDialog = ({ entity, links }: { entity: Entity; links: number }) => (
  <Dialog
    id="delete"
    title={`Delete ${cut(entity.name, 60)}?`}
    small
    close={entityHref(entity.id)}
    form={{ action: `${entityHref(entity.id)}/delete` }}
    foot={
      <>
        <Cancel to={entityHref(entity.id)} focus>
          Keep it
        </Cancel>
        <Submit kind="danger">Delete</Submit>
      </>
    }
  >
    <p class="prose">
      The entity and its {count(links, "link")} are deleted for good. Memories and exchanges that name it
      stay.
    </p>
  </Dialog>
);

export const foundEntities = (n: number): string => `${num(n)} ${n === 1 ? "entity" : "entities"}.`;
