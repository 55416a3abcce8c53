import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { withOptionsBehind } from './leading-options.ts';
import { program } from './program.ts';

describe('options before their command', () => {
  it.each<[string, string, string]>([
    ['none', 'migrate web --context west', 'migrate web --context west'],
    ['a value of its own', '--context west migrate web', 'migrate --context west web'],
    ['an attached value', '--context=west -nshop migrate web', 'migrate --context=west -nshop web'],
    ['no value', '--watch -n shop migrate web', 'migrate --watch -n shop web'],
    ['places within a group', '--data-dir a image --output json list', 'image list --data-dir a --output json'],
    ['an alias of the command', '--data-dir a image ls', 'image ls --data-dir a'],
    ['no command', '--context west', '--context west'],
    ['nothing that is known', '--nothing status', '--nothing status'],
    ['those of the program', '--version', '--version'],
    ['what is no option any more', '-n shop logs -- -n', 'logs -n shop -- -n'],
  ])('with %s', (_, typed, understood) => {
    expect(withOptionsBehind(typed.split(' '), program)).toEqual(understood.split(' '));
  });

  it('take a value with all commands or with none, so that it is known before the command is', () => {
    const takes = new Map<string, Set<boolean>>();
    const look = (command: Command): void => {
      for (const { long, short, required } of command.options)
        for (const flag of [long, short]) if (flag) takes.set(flag, (takes.get(flag) ?? new Set()).add(required));
      for (const child of command.commands) look(child);
    };
    look(program);
    expect([...takes].filter(([, ways]) => ways.size > 1)).toEqual([]);
  });
});
