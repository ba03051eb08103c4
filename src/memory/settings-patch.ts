/** What a PUT of the memory settings takes. Apart from the settings themselves, since a schema costs time at the start. */
import { z } from "zod";
import { memorySettings } from "./settings.ts";

/** What a PUT takes: any subset, strictly. Fields left out keep their value (no default is filled in). */
export const memorySettingsPatch = z.strictObject(
  Object.fromEntries(
    Object.entries(memorySettings.shape).map(([name, field]) => [name, field.unwrap().optional()]),
  ) as {
    [Name in keyof typeof memorySettings.shape]: z.ZodOptional<
      ReturnType<(typeof memorySettings.shape)[Name]["unwrap"]>
    >;
  },
);
