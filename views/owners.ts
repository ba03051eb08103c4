/** Owners as a person knows them: the names of API keys. */

export interface Owner {
  id: string;
  name: string;
  revoked?: boolean;
}

/** "editor", or "editor, anna" for one of many people behind a key; the id where the key is not known. */
export function ownerName(owners: readonly Owner[], id: string): string {
  const exact = owners.find((owner) => owner.id === id);
  if (exact) return exact.name;
  const colon = id.indexOf(":");
  const key = colon < 0 ? undefined : owners.find((owner) => owner.id === id.slice(0, colon));
  return key ? `${key.name}, ${id.slice(colon + 1)}` : id;
}

/** Options of an owner select. `id` is kept even when it is no key, so that a chosen person is not lost. */
export function ownerOptions(
  owners: readonly Owner[],
  chosen: string | null | undefined,
): { value: string; text: string }[] {
  const options = owners
    .filter((owner) => !owner.revoked || owner.id === chosen)
    .map((owner) => ({ value: owner.id, text: owner.name }));
  if (chosen && !options.some((option) => option.value === chosen)) {
    options.push({ value: chosen, text: ownerName(owners, chosen) });
  }
  return options;
}
