/** `recollect completion bash|zsh|fish`: completes verbs and common flags. */
import { exit, expectArgs, UsageError } from "./verb.ts";
import type { Verb } from "./verb.ts";
import { verbs } from "./verbs.ts";

export const verb: Verb = {
  usage: ["recollect completion bash", "recollect completion zsh", "recollect completion fish"],
  async run(call) {
    const [shell] = expectArgs(call, "SHELL");
    const make = shell === "bash" ? bash : shell === "zsh" ? zsh : shell === "fish" ? fish : null;
    if (!make)
      throw new UsageError(`There is no completion for ${shell}; there is one for bash, zsh and fish.`);
    call.print(make());
    return exit.ok;
  },
};

const names = () => Object.keys(verbs);

function bash(): string {
  return [
    "_recollect() {",
    '  local word="${COMP_WORDS[COMP_CWORD]}"',
    `  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${names().join(" ")}" -- "$word"));`,
    '  else COMPREPLY=($(compgen -W "--data-dir --key --json --help" -- "$word") $(compgen -f -- "$word")); fi',
    "}",
    "complete -F _recollect recollect",
  ].join("\n");
}

function zsh(): string {
  const entries = Object.entries(verbs).map(
    ([name, { summary }]) => `    '${name}:${summary.replaceAll("'", "")}'`,
  );
  return [
    "#compdef recollect",
    "_recollect() {",
    "  local -a verbs",
    "  verbs=(",
    ...entries,
    "  )",
    "  if (( CURRENT == 2 )); then _describe 'verb' verbs; else _files; fi",
    "}",
    '_recollect "$@"',
  ].join("\n");
}

function fish(): string {
  return Object.entries(verbs)
    .map(
      ([name, { summary }]) =>
        `complete -c recollect -n __fish_use_subcommand -f -a ${name} -d '${summary.replaceAll("'", "")}'`,
    )
    .join("\n");
}
