import type { Command, Option } from 'commander';

/** The commands as data, from commander's own tree: what shells complete and the documentation lists. */

export interface OptionNode {
  /** `--output`; undefined where there is only a letter. */
  readonly long: string | undefined;
  /** `-o`. */
  readonly short: string | undefined;
  readonly description: string;
  /** Whether something has to follow it. */
  readonly takesValue: boolean;
  /** What may follow it, where that is one of a few words. */
  readonly choices: readonly string[];
  /** Whether what follows is a file or a directory. */
  readonly values: 'files' | 'directories' | 'other';
}

/** What the cluster has names for. */
const NAMED_KINDS = ['vm', 'vmi', 'migration', 'node'] as const;
export type NamedKind = (typeof NAMED_KINDS)[number];

export interface CommandNode {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly description: string;
  readonly options: readonly OptionNode[];
  /** What may be its first argument, where that is one of a few words. */
  readonly words: readonly string[];
  /** Of what its argument may be the name, in the cluster. */
  readonly names: readonly NamedKind[];
  /** Whether its arguments may be files. */
  readonly takesFiles: boolean;
  readonly children: readonly CommandNode[];
}

/** The tree below a command, itself included; hidden commands are left out. */
export function commandTree(command: Command): CommandNode {
  const help = command.createHelp();
  return {
    name: command.name(),
    aliases: command.aliases(),
    description: command.description(),
    // Those of kubectl are in no help but one of their own; whoever types one knows it.
    options: [...help.visibleOptions(command), ...command.options.filter(({ hidden }) => hidden)].map(optionNode),
    words: wordsOf(command),
    names: namedKinds(command),
    takesFiles: command.registeredArguments.some((argument) => argument.name() === 'file'),
    children: help
      .visibleCommands(command)
      .filter((child) => child.name() !== 'help')
      .map((child) => commandTree(child)),
  };
}

function optionNode(option: Option): OptionNode {
  const { long, short, description, argChoices, flags } = option;
  return {
    long: long ?? undefined,
    short: short ?? undefined,
    description,
    takesValue: option.required || option.optional,
    choices: argChoices ?? [],
    values: /<file>/.test(flags) ? 'files' : /<directory>/.test(flags) ? 'directories' : 'other',
  };
}

/** Kinds that it says it takes, or that its first argument is called by. */
function namedKinds(command: Command): readonly NamedKind[] {
  const words = wordsOf(command);
  const [first] = command.registeredArguments;
  return NAMED_KINDS.filter((kind) => (words.length > 0 ? words.includes(kind) : first?.name() === kind));
}

/** Kinds that a usage such as `[vm|vmi] <name>` offers, and choices of the first argument. */
function wordsOf(command: Command): readonly string[] {
  const [first] = command.registeredArguments;
  const kinds = /\[([a-z]+(?:\|[a-z]+)+)\] </.exec(command.usage())?.[1];
  return first?.argChoices ?? kinds?.split('|') ?? [];
}
