import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { program } from '../../src/cli/program.ts';
import { anchorsIn, commandsIn, fencedIn, proseOf } from '../docs/page.ts';
import {
  BY_A_NEWCOMER,
  BY_PROMETHEUS,
  GENERATED,
  IN_SCENES,
  NOT_PLAYED,
  ON_KUBERNETES,
  ON_ONE_CLUSTER,
  ON_TWO_CLUSTERS,
  WITHOUT_NODES,
} from '../docs/played.ts';

/** Documentation that cannot rot unseen: links lead somewhere, commands exist, and tests type them, or it is said why not. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const INDEX = 'docs/README.md';
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...['docs', 'guest', 'examples', 'bench']
    .filter((directory) => existsSync(join(root, directory)))
    .flatMap((directory) => readdirSync(join(root, directory), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name))),
];
const textOf = new Map(pages.map((page) => [page, readFileSync(join(root, page), 'utf8')]));

const prose = (page: string): string => proseOf(textOf.get(page) ?? '');

interface Link {
  readonly page: string;
  readonly target: string;
  /** The file that it leads to. */
  readonly file: string;
  readonly anchor: string | undefined;
}

function linksOf(page: string): Link[] {
  return [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = '', anchor] = target.split('#');
      return { page, target, file: path === '' ? page : normalize(join(dirname(page), path)), anchor };
    });
}

describe('links', () => {
  it('lead to what there is', () => {
    const broken = pages
      .flatMap(linksOf)
      .filter(({ file, anchor }) => {
        if (!existsSync(join(root, file))) return true;
        return anchor !== undefined && textOf.has(file) && !anchorsIn(textOf.get(file) ?? '').has(anchor);
      })
      .map(({ page, target }) => `${page}: ${target}`);
    expect(broken).toEqual([]);
  });

  it('lead from the index to every page', () => {
    const linked = linksOf(INDEX).map(({ file }) => file);
    const missing = pages.filter((page) => page.startsWith('docs/') && page !== INDEX);
    expect(missing.filter((page) => !linked.some((file) => file === page || page.startsWith(`${file}/`)))).toEqual([]);
    expect(linksOf('README.md').map(({ file }) => file)).toContain(INDEX);
  });
});

interface Typed {
  readonly page: string;
  readonly line: number;
  readonly command: string;
  /** Whether a page that is played plays it. */
  readonly isConsole: boolean;
}

/** Everything behind a prompt. */
const typed: readonly Typed[] = pages.flatMap((page) =>
  fencedIn(textOf.get(page) ?? '').flatMap((fenced) => {
    const isConsole = fenced.language === 'console';
    if (!isConsole && !fenced.lines.some((line) => line.startsWith('$ '))) return [];
    return commandsIn(fenced).map(({ command, line }) => ({ page, line, command, isConsole }));
  }),
);

const PLAYED: ReadonlySet<string> = new Set([
  ...ON_ONE_CLUSTER,
  ON_TWO_CLUSTERS,
  ON_KUBERNETES,
  ...WITHOUT_NODES,
  ...IN_SCENES.keys(),
  BY_A_NEWCOMER,
  BY_PROMETHEUS,
]);
const isOf = ([where, what]: (typeof NOT_PLAYED)[number], { page, command }: Typed): boolean =>
  where === page && command.startsWith(what);

describe('commands on pages', () => {
  it('are fenced so that it is clear whether they are played', () => {
    const unclear = pages.flatMap((page) =>
      fencedIn(textOf.get(page) ?? '')
        .filter(({ language }) => ['', 'sh', 'bash', 'shell', 'shell-session'].includes(language))
        .map(({ line }) => `${page}:${line}: say console, text, yaml or what it is`),
    );
    expect(unclear).toEqual([]);
  });

  const shown = typed.filter(({ page }) => page !== GENERATED);
  const lineOf = ({ page, line, command }: Typed): string => `${page}:${line}: ${command}`;

  it('are played where they are marked console', () => {
    expect(shown.filter(({ isConsole, page }) => isConsole && !PLAYED.has(page)).map(lineOf)).toEqual([]);
    // Of the README one section is played.
    const played = fencedIn(textOf.get(BY_A_NEWCOMER) ?? '', 'Start').map(({ line }) => line);
    const all = fencedIn(textOf.get(BY_A_NEWCOMER) ?? '').filter(({ language }) => language === 'console');
    expect(all.map(({ line }) => line).filter((line) => !played.includes(line))).toEqual([]);
  });

  it('have a reason where they are not', () => {
    const illustrations = shown.filter(({ isConsole }) => !isConsole);
    const forgotten = illustrations.filter((each) => !NOT_PLAYED.some((entry) => isOf(entry, each)));
    expect(forgotten.map(lineOf)).toEqual([]);
    expect(NOT_PLAYED.filter((entry) => !illustrations.some((each) => isOf(entry, each)))).toEqual([]);
  });

  it('have reasons that name what there is', () => {
    for (const [page, command, reason] of NOT_PLAYED) {
      const files = [...reason.matchAll(/\b(?:test|src|docs)\/[\w./-]*\w/g)].map(([file]) => file);
      const says = `${page}: ${command}: ${reason}`;
      expect(files.length > 0 || reason.startsWith('no test: '), says).toBe(true);
      expect(
        files.filter((file) => !existsSync(join(root, file))),
        says,
      ).toEqual([]);
      for (const file of files.filter((each) => each.startsWith('docs/'))) expect([...PLAYED], says).toContain(file);
    }
  });

  it('are commands and options that there are', () => {
    expect(
      typed.flatMap(({ page, line, command }) => faultsOf(command).map((fault) => `${page}:${line}: ${fault}`)),
    ).toEqual([]);
  });

  it('are so in the middle of a sentence, too', () => {
    const named = pages.flatMap((page) =>
      [...prose(page).matchAll(/`((?:[^`\\]|\\.)*\bgodwit [^`]*)`/g)].map(([, text = '']) => ({ page, text })),
    );
    expect(named.length).toBeGreaterThan(100);
    expect(
      named.flatMap(({ page, text }) =>
        variantsOf(text).flatMap((each) => faultsOf(each).map((fault) => `${page}: ${fault}`)),
      ),
    ).toEqual([]);
  });
});

describe('commands in the comments of examples', () => {
  const manifests = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.yaml'));
  const shown = manifests.flatMap((name) =>
    [...readFileSync(join(root, 'examples', name), 'utf8').matchAll(/^# {3}(\S.*)$/gm)].map(([, command = '']) => ({
      name,
      command,
    })),
  );

  it('are commands and options that there are', () => {
    expect(shown.length).toBeGreaterThan(15);
    expect(
      shown.flatMap(({ name, command }) => faultsOf(command).map((fault) => `examples/${name}: ${fault}`)),
    ).toEqual([]);
  });

  it('begin with programs that there are, and name files that there are', () => {
    for (const { name, command } of shown) {
      const [program = ''] = command.split(' ');
      const isProgram = ['kubectl', 'godwit'].includes(program) || existsSync(join(root, program));
      expect(isProgram, `examples/${name}: ${command}`).toBe(true);
      for (const [file] of command.matchAll(/\bexamples\/\S+/g))
        expect(existsSync(join(root, file)), `examples/${name}: ${file}`).toBe(true);
    }
  });

  it('apply what has a name, and create what has none', () => {
    for (const name of manifests) {
      const verb = /^ {2}generateName:/m.test(readFileSync(join(root, 'examples', name), 'utf8')) ? 'create' : 'apply';
      const typed = shown.flatMap(({ command }) => {
        const [, found] = /^kubectl (apply|create)(?= .*-f )/.exec(command) ?? [];
        return found !== undefined && command.includes(`examples/${name}`) ? [found] : [];
      });
      expect(
        typed.filter((each) => each !== verb),
        name,
      ).toEqual([]);
    }
  });

  it('are of files that their page lists', () => {
    const listed = linksOf('examples/README.md').map(({ file }) => file);
    expect(listed).toEqual(expect.arrayContaining(manifests.map((name) => `examples/${name}`)));
  });
});

/** What `start|stop VM [-n NAMESPACE]` stands for: each of the commands, with all that it may have. */
function variantsOf(text: string): string[] {
  const words = text.replaceAll('\\|', '|').replaceAll(/[[\]]/g, ' ').trim().split(/\s+/);
  return words.reduce<string[]>(
    (lines, word) => word.split(/(?<=\w)\|(?=\w)/).flatMap((choice) => lines.map((line) => `${line} ${choice}`)),
    [''],
  );
}

/** What a command line says that `godwit` does not know. */
function faultsOf(line: string): string[] {
  return line
    .replaceAll('\\\n', ' ')
    .split(/\|\||&&|[|;&]|\$\(|\s#\s/)
    .map((part) => part.trim().split(/\s+/))
    .flatMap((words) => {
      const at = words.indexOf('godwit');
      const isCommand = words
        .slice(0, Math.max(at, 0))
        .every((word) => /^(\w+=.*|npx|--no-install|sudo|kubectl)$/.test(word));
      return at < 0 || !isCommand ? [] : faultsOfWords(words.slice(at + 1));
    });
}

function faultsOfWords(words: readonly string[]): string[] {
  let [command, rest]: [Command, readonly string[]] = [program, words];
  while (command.commands.length > 0) {
    const next = command.commands.find((each) => each.name() === rest[0] || each.aliases().includes(rest[0] ?? ''));
    // A group may be named by itself.
    if (!next) return /^(-.*|help|)$/.test(rest[0] ?? '') ? [] : [`there is no command ${words.join(' ')}`];
    [command, rest] = [next, rest.slice(1)];
  }
  const known = new Set(['--help', ...command.options.map(({ long }) => long)]);
  return rest
    .filter((word) => /^--[a-z]/.test(word))
    .map((word) => word.replace(/=.*/, ''))
    .filter((option) => !known.has(option))
    .map((option) => `there is no option ${option} of ${command.name()}`);
}
