import { describe, expect, it } from 'vitest';
import { simulate } from '../../src/cli/simulate.ts';
import { realClock } from '../../src/env/real.ts';
import { runCli } from '../support/cli.ts';
import { sample } from '../support/sample.ts';

/** `godwit simulate` as a user types it: in processes of its own, one after another. */

const PART = 'ms=120000 faults=crash,stale,watchCut,answerLost,clockSkew actions=0,1,2,3,4,5,6,7,8,9';

describe('godwit simulate', () => {
  it('gives the same trace to the byte in two processes', async () => {
    const args = ['simulate', '--scenario', 'pods', '--seed', '7', '--only', PART, '--trace'];
    const [first, second] = [await runCli(args), await runCli(args)];
    expect([first.code, second.code]).toEqual([0, 0]);
    expect(first.stdout.split('\n').length).toBeGreaterThan(100);
    expect(second.stdout).toBe(first.stdout);
    const other = await runCli([...args.slice(0, 4), '8', ...args.slice(5)]);
    expect(other.stdout).not.toBe(first.stdout);
  }, 120_000);

  it('tells of a failure all that is needed, and the command that replays it', async () => {
    const printed: string[] = [];
    const print = (line: string): unknown => printed.push(line);
    const host = { clock: realClock, randomSeed: () => 0, print, shrinkRunsMax: 10 };
    await expect(simulate({ seed: 2, plant: 'lying-disk' }, host)).rejects.toThrow('seed 2 of pods breaks durability');
    const found = `${printed.join('\n')}\n`;
    expect(found).toMatch(/Seed 2 of pods breaks durability after [\d.]+ s:\n {2}the store came back/);
    const digest = /of trace ([0-9a-f]{16})/.exec(found)?.[1];
    const [, command = '', only = ''] = /To replay it: godwit (.*) --only '(.*)'\n/.exec(found) ?? [];
    const replayed = await runCli([...command.split(' '), '--only', only]);
    expect(replayed.code).toBe(1);
    expect(replayed.stderr).toBe('godwit: seed 2 of pods breaks durability\n');
    expect(replayed.stdout).toContain(`of trace ${digest}`);
  }, 300_000);

  it('runs as many seeds as it is told to', async () => {
    const { code, stdout } = await runCli(['simulate', '--scenario', 'garbage', '--seeds', '2', '--seed', '40']);
    expect(stdout).toMatch(/^2 seeds from 40 on: no invariant broke in [\d.]+ simulated hours \(\d+ s\)\.\n$/);
    expect(code).toBe(0);
  }, 120_000);

  it('says how far it is', async () => {
    const [lines, printed]: [string[], string[]] = [[], []];
    const host = { clock: realClock, randomSeed: () => 41, print: (line: string) => printed.push(line) };
    const progress = (line: string): unknown => lines.push(line);
    await simulate({ scenario: 'garbage', seeds: 2 }, { ...host, progress });
    expect(lines).toEqual([
      '0/2 seeds, 0.0 simulated hours; now 41 of garbage',
      expect.stringMatching(/^1\/2 seeds, 0\.[1-9] simulated hours; now 42 of garbage$/),
      '',
    ]);
    expect(printed).toHaveLength(1);
  }, 120_000);

  const refusals: readonly [args: readonly string[], message: RegExp][] = [
    [['--scenario', 'none'], /there is no scenario "none"; there are pods, /],
    [['--plant', 'none'], /there is no planted bug "none"; there are lying-disk, /],
    [
      ['--scenario', 'quotas', '--plant', 'lying-disk'],
      /lying-disk breaks durability, which quotas does not ask; try pods/,
    ],
    [['--seeds', '0'], /give a whole number above 0/],
    [['--seeds', 'many'], /give a whole number above 0/],
    [['--seed', '-1'], /give a whole number of at most 15 digits/],
    [['--trace'], /give --seed/],
    [['--seed', '1', '--only', 'ms=0'], /--only cannot be understood: ms must be a positive number/],
    [['--seed', '1', '--only', 'actions=x'], /--only cannot be understood: this seed has no action x/],
    [['--seed', '1', '--only', 'faults=none'], /--only cannot be understood: there is no fault none/],
    [['--seed', '1', '--only', 'nonsense'], /--only cannot be understood: nonsense has no =/],
  ];

  it.each(sample(refusals, 3))('refuses %j with a sentence', async (args, message) => {
    const { code, stderr } = await runCli(['simulate', ...args]);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });
});
