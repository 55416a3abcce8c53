import type { Command, Option } from 'commander';

/** A flag, and what may stick to it: `--context=west`, `-nshop`. */
const FLAG = /^(--[a-z][^=]*|-[a-zA-Z])(.*)$/s;

/**
 * Arguments in which options that stand before their command stand behind it, where commander looks for them: users of virtctl
 * write `--context west start web`. What no command knows stays where it is.
 */
export function withOptionsBehind(args: readonly string[], program: Command): string[] {
  let command = program;
  let rest = args;
  const [words, options]: [string[], string[]] = [[], []];
  while (command.commands.length > 0) {
    const [first = '', ...others] = rest;
    const next = command.commands.find((each) => each.name() === first || each.aliases().includes(first));
    if (next) {
      words.push(first);
      [command, rest] = [next, others];
      continue;
    }
    const [, flag = '', attached] = FLAG.exec(first) ?? [];
    const option = optionBelow(command, flag);
    if (!option) break;
    const length = option.required && attached === '' ? 2 : 1;
    options.push(...rest.slice(0, length));
    rest = rest.slice(length);
  }
  return [...words, ...options, ...rest];
}

/** An option of some command below this one. */
function optionBelow(command: Command, flag: string): Option | undefined {
  for (const child of command.commands) {
    const found = child.options.find(({ long, short }) => long === flag || short === flag) ?? optionBelow(child, flag);
    if (found) return found;
  }
  return undefined;
}
