import type { Command } from 'commander';

/** As Go's flags read them, which is how users of virtctl and kubectl may write them. */
export const YES: readonly string[] = ['1', 't', 'T', 'true', 'TRUE', 'True'];
const NO: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/**
 * Arguments in which `--dry-run=true` is `--dry-run`, and `--dry-run=false` is not there. Options that take a value stay as
 * they are, and so does what stands behind `--`.
 */
export function withPlainBooleans(args: readonly string[], program: Command): string[] {
  let command = program;
  const plain: string[] = [];
  for (const [index, argument] of args.entries()) {
    if (argument === '--') return [...plain, ...args.slice(index)];
    const [, flag = '', value = ''] = /^(--[^=]+)=(.*)$/.exec(argument) ?? [];
    const option = command.options.find(({ long }) => long === flag);
    const isBoolean = option !== undefined && !option.required && !option.optional;
    if (isBoolean && NO.has(value)) continue;
    plain.push(isBoolean && YES.includes(value) ? flag : argument);
    const next = command.commands.find((each) => each.name() === argument || each.aliases().includes(argument));
    if (next) command = next;
  }
  return plain;
}
