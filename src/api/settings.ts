/** `/api/settings`: what the person who runs the box decides. */
import type { Admin } from "../admin.ts";
import { memorySettings, memorySettingsPatch } from "../memory/settings-schema.ts";
import { operation, type Operation } from "./operation.ts";

const base = { tag: "Settings", access: "management" } as const;

export function settingsOperations({ settings }: Admin): Operation[] {
  return [
    operation({
      ...base,
      method: "get",
      path: "/api/settings/memory",
      summary: "All memory settings",
      answer: memorySettings,
      handle: () => settings.read(),
    }),
    operation({
      ...base,
      method: "put",
      path: "/api/settings/memory",
      summary: "Change some memory settings; answers all of them",
      description: "Takes effect on the next request.",
      body: memorySettingsPatch,
      answer: memorySettings,
      handle: ({ body }) => settings.write(body),
    }),
  ];
}
