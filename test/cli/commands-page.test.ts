import type { Argument, Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { commandTree } from '../../src/cli/completion/command-tree.ts';
import { kubectlOptions } from '../../src/cli/kubectl-options.ts';
import { program } from '../../src/cli/program.ts';

/** Every command is documented and in the style of all of them; docs/commands.md is what the commands say of themselves. */

const PAGE = '../../docs/commands.md';
const cell = (text: string): string => text.replaceAll('|', '\\|');

const KUBECTL_OPTIONS = kubectlOptions().map(
  ({ flags, description }) => `| \`${cell(flags)}\` | ${cell(description)} |`,
);

const INTRODUCTION = `# Commands

This page is made from the commands themselves: \`npx vitest run test/cli/commands-page.test.ts -u\` writes it anew, and a
test fails where it is not what they say. \`godwit help COMMAND\` prints the same.

## For all of them

- **Which cluster.** \`--kubeconfig FILE\` and \`--context CONTEXT\`, or \`--data-dir DIRECTORY\` of a cluster of this machine;
  else the files of \`KUBECONFIG\`, else the cluster of the default data directory (\`GODWIT_DATA_DIR\`, or \`~/.godwit\`), else
  \`~/.kube/config\`, else what a pod has by itself. It works with any kubeconfig that kubectl works with.
- **As kubectl and virtctl.** Commands that talk to a cluster take [kubectl's options for all commands](#kubectls-options), too.
- **As a plugin of kubectl.** \`kubectl godwit migrate web\` is the same as \`godwit migrate web\` once \`kubectl-godwit\` is on the
  path, where \`npm install -g .\` in a clone puts both; then \`~/.kube/config\` goes before the default data directory, as with kubectl.
- **Options** may stand before the command, too: \`godwit --context west migrate web\`.
- **For programs.** \`-o json\` and \`-o yaml\` print the same, with the same fields; \`-o wide\` prints more for people, where there is more. Of \`drain\` and
  \`move\` it is for \`--dry-run\`.
- **Colours** are for terminals alone, and for nobody who has set \`NO_COLOR\`.
- **Errors** are one sentence on standard error, with what to do about it.
- **virtctl.** \`start\`, \`stop\`, \`restart\`, \`pause\`, \`unpause\`, \`console\`, \`migrate\`, \`migrate-cancel\` and \`evacuate-cancel\` take
  virtctl's arguments (also as Go's flags are written: \`--dry-run=true\`), and say virtctl's words.

| exit code | |
|---|---|
| 0 | it was done; of \`--dry-run\`: it could be done |
| 1 | it was not, or only in part: a sentence says why, and what to do |
| 2 | the command line is wrong: nothing was done |
| 130 | somebody stopped the command (Ctrl+C); what was begun in the cluster goes on, and \`drain\`, \`migrate --watch\` and \`move\` say in a sentence how to stop that. What serves until it is stopped (\`up\`, \`agent\`, \`controllers\`, \`extension\`, \`sync\`, \`launcher\`) has done its work then: 0 |
| 141 | nobody reads any more what it prints (\`\\| head\`); what serves goes on, and so does \`tour\` |

## kubectl's options

All commands that have \`--kubeconfig\`, \`--context\` and \`--data-dir\` take these, too, and \`godwit options\` prints them. They go before what the
kubeconfig says; with \`--server\`, none is needed. Who names a token or a certificate is known by that alone, and who names
somebody to be treated as is nobody whom the kubeconfig names. Of \`move\`, they are for the cluster that the guest leaves; of
\`token create\`, \`--server\` is its own.

| | |
|---|---|
${KUBECTL_OPTIONS.join('\n')}
`;

interface Placed {
  readonly path: string;
  readonly command: Command;
}

function placed(command: Command, path = 'godwit'): Placed[] {
  return command.commands.flatMap((child) => {
    const below = `${path} ${child.name()}`;
    return child.commands.length > 0 ? placed(child, below) : [{ path: below, command: child }];
  });
}

const all = placed(program);

/** The program itself, and commands that have no work but that of their own commands. */
const groups: Placed[] = [
  { path: 'godwit', command: program },
  ...program.commands
    .filter(({ commands }) => commands.length > 0)
    .map((command) => ({ path: `godwit ${command.name()}`, command })),
];

function helpOf(command: Command): string {
  let help = '';
  command.configureOutput({ writeOut: (text) => void (help += text) });
  command.outputHelp();
  return help;
}

/** The lines of help below a title. */
function examplesOf(command: Command): string[] {
  const [, examples = ''] = helpOf(command).split('\nExample:\n');
  return examples
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function argumentRow(argument: Argument): string {
  const choices = argument.argChoices ? ` (${argument.argChoices.join(', ')})` : '';
  return `| \`${cell(argument.required ? `<${argument.name()}>` : `[${argument.name()}]`)}\` | ${cell(argument.description)}${choices} |`;
}

function section({ path, command }: Placed): string {
  const help = command.createHelp();
  const usage = `${path} ${command.usage()}`;
  const rows = [
    ...command.registeredArguments.map(argumentRow),
    ...help
      .visibleOptions(command)
      .filter((option) => option.long !== '--help')
      .map((option) => `| \`${cell(option.flags)}\` | ${cell(help.optionDescription(option))} |`),
  ];
  const aliases = command.aliases().map((alias) => `\`${alias}\``);
  return [
    `### ${path}`,
    '',
    `${command.description()}${aliases.length > 0 ? ` Also: ${aliases.join(', ')}.` : ''}`,
    '',
    '```console',
    ...examplesOf(command).map((line) => `$ ${line}`),
    '```',
    '',
    `Usage: \`${usage}\``,
    '',
    ...(rows.length > 0 ? ['| | |', '|---|---|', ...rows, ''] : []),
  ].join('\n');
}

describe('commands', () => {
  it('are all on their page', async () => {
    const list = all.map(
      ({ path, command }) => `| [\`${path}\`](#${path.replaceAll(' ', '-')}) | ${cell(command.description())} |`,
    );
    const page = [INTRODUCTION, '## All of them', '', '| | |', '|---|---|', ...list, '', ...all.map(section)].join(
      '\n',
    );
    await expect(`${page.trimEnd()}\n`).toMatchFileSnapshot(PAGE);
  });

  it.each(all)('$path is described, with examples of itself', ({ path, command }) => {
    expect(command.description()).toMatch(/^[A-Z].*\.$/);
    const examples = examplesOf(command);
    expect(examples.some((line) => line.includes(path))).toBe(true);
    for (const argument of command.registeredArguments) expect(argument.description).not.toBe('');
    for (const option of command.options) expect(option.description).toMatch(/^[^A-Z].*[^.]$/);
  });

  it.each(groups)('$path is described, with examples of its commands', ({ path, command }) => {
    expect(command.description()).toMatch(/^[A-Z].*\.$/);
    const known = command.commands.map((child) => `${path} ${child.name()}`);
    const examples = examplesOf(command);
    expect(examples.length).toBeGreaterThan(0);
    expect(examples.filter((line) => !known.some((each) => line.startsWith(each)))).toEqual([]);
  });

  it('say where exit codes are explained, each of which is', () => {
    const help = helpOf(program);
    expect(help).toContain('docs/commands.md');
    const told = [...INTRODUCTION.matchAll(/^\| (\d+) \|/gm)].map(([, code = '']) => code);
    expect(told).toHaveLength(5);
    for (const code of told) expect(help).toMatch(new RegExp(`\\b${code} `));
  });

  it('that look at a cluster are told which one in the same way', () => {
    // These are parts of a cluster themselves, or are of this machine alone.
    const others = [
      'up',
      'down',
      'backup',
      'tour',
      'agent',
      'launcher',
      'controllers',
      'extension',
      'sync',
      'simulate',
      'options',
      'completion',
      'image import',
      'image list',
      'image rm',
      'manifests',
    ];
    const flags = ['--kubeconfig', '--context', '--data-dir', ...kubectlOptions().map(({ long }) => long)];
    const wrong = all
      .filter(({ path }) => !others.includes(path.slice('godwit '.length)))
      .filter(({ command }) => !flags.every((flag) => command.options.some(({ long }) => long === flag)))
      .map(({ path }) => path);
    expect(wrong).toEqual([]);
  });

  it('that list or show something print it for programs, too', () => {
    const shown = 'status, queue, why, policy explain, image list, token list, trust list, drain, move, token create';
    for (const path of shown.split(', ')) {
      const found = all
        .find((each) => each.path === `godwit ${path}`)
        ?.command.options.find(({ long }) => long === '--output');
      expect(found?.argChoices, path).toEqual(['json', 'yaml', 'wide']);
    }
  });

  it('say the unit of every span of time, also of those that hold unless told otherwise', () => {
    const spans = all.flatMap(({ path, command }) =>
      command.options.filter(({ flags }) => flags.includes('<duration>')).map((option) => ({ path, option })),
    );
    expect(spans.length).toBeGreaterThan(2);
    const wrong = spans
      .filter(
        ({ option }) => option.defaultValue !== undefined && !/^\d+[smhd]$/.test(option.defaultValueDescription ?? ''),
      )
      .map(({ path, option }) => `${path} ${option.flags}`);
    expect(wrong).toEqual([]);
    const bare = all.flatMap(({ path, command }) =>
      command.options
        .filter(({ defaultValue, defaultValueDescription: told, flags }) => {
          const hasUnit = told !== undefined || /<(seconds|minutes|count)>/.test(flags);
          return typeof defaultValue === 'number' && !hasUnit;
        })
        .map(({ flags }) => `${path} ${flags}`),
    );
    expect(bare).toEqual([]);
  });

  it('have one letter for one thing', () => {
    const letters = new Map<string, Set<string>>();
    for (const { command } of all)
      for (const { short, long } of command.options)
        if (short) letters.set(short, (letters.get(short) ?? new Set()).add(long ?? ''));
    expect([...letters].filter(([, names]) => names.size > 1)).toEqual([]);
  });

  it('are all completed', () => {
    const names = commandTree(program).children.map(({ name }) => name);
    expect(names).toEqual(program.commands.map((command) => command.name()));
  });
});
