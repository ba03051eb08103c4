/** The settings' table as schemas: what the routes answer and what a PUT takes. */
import { z } from "zod";
import { settingFields } from "./settings.ts";
import type { MemorySettings, SettingField } from "./settings.ts";

type Fields = { [Name in keyof MemorySettings]: z.ZodType<MemorySettings[Name]> };

function schemaOf(field: SettingField): z.ZodType {
  const schema = plain(field);
  return "nullable" in field && field.nullable === true ? schema.nullable() : schema;
}

function plain(field: SettingField): z.ZodType {
  switch (field.type) {
    case "flag":
      return z.boolean();
    case "whole":
      return z.int().min(field.min).max(field.max);
    case "choice":
      return z.enum(field.of);
    case "text": {
      let text = z.string();
      if (field.min !== undefined) text = text.min(field.min);
      if (field.max !== undefined) text = text.max(field.max);
      return field.pattern === undefined ? text : text.regex(field.pattern, field.problem);
    }
    case "list":
      return z.array(z.string().regex(field.pattern, field.problem)).max(field.most);
    case "objects":
      return z.record(z.string().regex(field.pattern, field.problem), z.record(z.string(), z.unknown()));
  }
}

const fields = Object.fromEntries(
  Object.entries(settingFields).map(([name, field]) => [name, schemaOf(field)]),
) as Fields;

/** All settings, as they are answered. */
export const memorySettings = z.strictObject(
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      (field as z.ZodType).default(settingFields[name as keyof Fields].default),
    ]),
  ) as { [Name in keyof Fields]: z.ZodDefault<Fields[Name]> },
);

/** What a PUT takes: any subset, strictly. Fields left out keep their value (no default is filled in). */
export const memorySettingsPatch = z.strictObject(
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.optional()])) as {
    [Name in keyof Fields]: z.ZodOptional<Fields[Name]>;
  },
);
