/** Fields of forms: control, label, hint, and what the server found wrong with it. */
import type { Child, PropsWithChildren } from "hono/jsx";
import { Icon } from "./icons.tsx";

/** What the server found wrong, by field name; "" holds what belongs to no field. */
export type Errors = Readonly<Record<string, string>>;

export const fieldId = (form: string, name: string): string => `${form}-${name.replace(/[^\w-]/g, "-")}`;

/** What a screen reader says of a control besides its label. The first field in trouble gets the focus. */
const described = ({ form, name, errors = {}, hint }: ControlProps) => {
  const id = fieldId(form, name);
  const by = [hint ? `${id}-h` : "", errors[name] ? `${id}-e` : ""].filter(Boolean).join(" ");
  return {
    ...(errors[name] ? { "aria-invalid": "true" } : {}),
    ...(by ? { "aria-describedby": by } : {}),
    ...(errors[name] && Object.keys(errors)[0] === name ? { autofocus: true } : {}),
  };
};

const Hint = ({ form, name, hint }: { form: string; name: string; hint: Child }) =>
  hint ? (
    <p class="hint" id={`${fieldId(form, name)}-h`}>
      {hint}
    </p>
  ) : null;

export const FieldError = ({ form, name, errors }: { form: string; name: string; errors: Errors }) =>
  errors[name] ? (
    <p class="field-error" id={`${fieldId(form, name)}-e`}>
      <Icon name="alert" />
      <span>{errors[name]}</span>
    </p>
  ) : null;

/** Shown when no single field can carry the message, or when there are two or more of them. */
export const FormErrors = ({
  form,
  errors,
  labels,
}: {
  form: string;
  errors: Errors;
  labels: Readonly<Record<string, string>>;
}) => {
  const names = Object.keys(errors);
  const known = names.filter((name) => labels[name]);
  if (names.length === 0 || (names.length === 1 && known.length === 1)) return null;
  return (
    <div class="form-errors" role="alert" tabindex={-1}>
      <h3>{names.length === 1 ? "This did not work" : `${names.length} fields need another look`}</h3>
      <ul>
        {names.map((name) => (
          <li>
            {labels[name] ? (
              <a href={`#${fieldId(form, name)}`}>{`${labels[name]}: ${errors[name]}`}</a>
            ) : (
              `${name ? `${name}: ` : ""}${errors[name]}`
            )}
          </li>
        ))}
      </ul>
    </div>
  );
};

interface ControlProps {
  form: string;
  name: string;
  errors?: Errors;
  /** The hint of the field or row around it, or just that there is one. */
  hint?: Child;
  /** Further attributes of the input itself. */
  more?: Record<string, unknown>;
}

type InputProps = ControlProps & { value?: string | number | null; kind?: "" | "mono" | "num" | "file" };

export const Input = ({ value, kind = "", more = {}, ...field }: InputProps) => (
  <input
    class={kind ? `input input-${kind}` : "input"}
    id={fieldId(field.form, field.name)}
    name={field.name}
    {...(value === null || value === undefined ? {} : { value: String(value) })}
    {...(kind === "num" ? { inputmode: "numeric" } : {})}
    {...more}
    {...described(field)}
  />
);

export type Option = string | { value: string; text: string };

type SelectProps = ControlProps & { options: readonly Option[]; value?: string | null | undefined };

export const Select = ({ options, value, more = {}, ...field }: SelectProps) => (
  <select
    class="select"
    id={fieldId(field.form, field.name)}
    name={field.name}
    {...more}
    {...described(field)}
  >
    {options.map((option) => {
      const { value: v, text } = typeof option === "string" ? { value: option, text: option } : option;
      return (
        <option value={v} {...(v === (value ?? "") ? { selected: true } : {})}>
          {text}
        </option>
      );
    })}
  </select>
);

type TextareaProps = ControlProps & { value?: string | null; rows?: number };

const Textarea = ({ value, rows = 3, more = {}, ...field }: TextareaProps) => (
  <textarea
    class="textarea"
    id={fieldId(field.form, field.name)}
    name={field.name}
    rows={rows}
    {...more}
    {...described(field)}
  >
    {/* A textarea swallows one line break at its start. */}
    {value?.startsWith("\n") ? `\n${value}` : (value ?? "")}
  </textarea>
);

/** A switch: `name=true` when on, nothing when off. */
export const Switch = ({
  on,
  label,
  more = {},
  ...field
}: ControlProps & { on: boolean; label?: string }) => (
  <input
    class="switch"
    type="checkbox"
    role="switch"
    id={fieldId(field.form, field.name)}
    name={field.name}
    value="true"
    {...(on ? { checked: true } : {})}
    {...(label ? { "aria-label": label } : {})}
    {...more}
    {...described(field)}
  />
);

interface FieldProps {
  form: string;
  name: string;
  label: Child;
  optional?: Child;
  hint?: Child;
  errors?: Errors;
  wide?: boolean;
  class?: string;
}

/** Label, control, hint and error. The fields below have one usual control each. */
export const Field = ({
  form,
  name,
  label,
  optional,
  hint,
  errors = {},
  wide,
  class: extra,
  children,
}: PropsWithChildren<FieldProps>) => (
  <div class={["field", wide ? "field-wide" : "", extra ?? ""].filter(Boolean).join(" ")}>
    <label for={fieldId(form, name)}>
      {label}
      {optional ? <span class="field-optional"> ({optional})</span> : null}
    </label>
    {children}
    <Hint form={form} name={name} hint={hint} />
    <FieldError form={form} name={name} errors={errors} />
  </div>
);

export const InputField = (props: FieldProps & InputProps) => (
  <Field {...props}>
    <Input {...props} />
  </Field>
);

/** For a secret, which is never sent back: what is stored stays where nothing is entered. */
export const SecretField = ({
  stored,
  placeholder = stored ? "Leave empty to keep" : "",
  ...props
}: FieldProps & {
  /** Masked, or "" where none is stored. */
  stored: string;
  placeholder?: string;
}) => (
  <InputField
    {...props}
    kind="mono"
    value=""
    optional={stored ? `set, ${stored}` : "optional"}
    more={{ type: "password", autocomplete: "off", placeholder }}
  />
);

export const SelectField = (props: FieldProps & SelectProps) => (
  <Field {...props}>
    <Select {...props} />
  </Field>
);

export const TextareaField = (props: FieldProps & TextareaProps) => (
  <Field {...props}>
    <Textarea {...props} />
  </Field>
);

/** One line of a settings form: what it is on the left, its control on the right. */
export const Row = ({
  form,
  name,
  label,
  hint,
  errors = {},
  children,
}: PropsWithChildren<{
  form: string;
  name: string;
  label: string;
  hint?: Child;
  errors?: Errors;
}>) => (
  <div class="row">
    <div class="row-text">
      <label class="label" for={fieldId(form, name)}>
        {label}
      </label>
      <Hint form={form} name={name} hint={hint} />
      <FieldError form={form} name={name} errors={errors} />
    </div>
    <div class="row-control">{children}</div>
  </div>
);

/** For forms that save on change: the button they need when there is no script. */
export const SaveWithoutScript = () => (
  <noscript>
    <p class="row-foot">
      <button class="btn btn-primary">Save</button>
    </p>
  </noscript>
);
