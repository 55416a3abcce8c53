import { describe, expect, it } from 'vitest';
import { Likeness } from './likeness.ts';
import { stepsOf } from './page.ts';

/** What is shown, what is printed, and whether that is the same. */
const CASES: readonly (readonly [name: string, shown: string, printed: string, isAlike: boolean])[] = [
  ['words', 'Nobody waits', 'Nobody waits', true],
  ['other words', 'Nobody waits', 'Somebody waits', false],
  ['ages', 'guest   40s   Running', 'guest     3m12s   Running', true],
  ['an age where there is none', 'guest   40s', 'guest   soon', false],
  ['numbers, which are what they are', '3 nodes', '2 nodes', false],
  ['quantities, which are what they are', 'blank, 8Mi', 'blank, 16Mi', false],
  ['sizes and speeds', '52.6 MiB, 8 MiB/s', '1 GiB, 12.5 KiB/s', true],
  ['how far something is', '42%', '7%', true],
  ['all of it, which is no matter of chance', '100%', '99%', false],
  [
    'times and addresses',
    'until 2026-11-16T17:00:00Z at 10.0.0.1:6443',
    'until 2027-01-02T03:04:05Z at 127.0.0.1:1',
    true,
  ],
  ['boots', `boot=${'1'.repeat(32)}`, `boot=${'a'.repeat(32)}`, true],
  ['two boots in place of one', `${'1'.repeat(32)} ${'1'.repeat(32)}`, `${'a'.repeat(32)} ${'b'.repeat(32)}`, false],
  ['one boot in place of two', `${'1'.repeat(32)} ${'2'.repeat(32)}`, `${'a'.repeat(32)} ${'a'.repeat(32)}`, false],
  ['nodes', 'node-1 to node-3', 'node-2 to node-1', true],
  ['a rest that is left out', 'refused: …', 'refused: for whatever reason', true],
  ['lines that are left out', 'one\n…\nfour', 'one\ntwo\nthree\nfour', true],
  ['lines that are left out, and the wrong end', 'one\n…\nfour', 'one\ntwo', false],
  ['more than is shown', 'one', 'one\ntwo', false],
  ['less than is shown', 'one\ntwo', 'one', false],
  ['what npm says of itself', 'one', 'added 211 packages in 28s\nnpm notice\none', true],
  ['what is special in patterns', 'a.b (c) [d] {e} $f?', 'a.b (c) [d] {e} $f?', true],
  ['what would be a pattern', 'a.b', 'axb', false],
];

const lines = (text: string): string[] => text.split('\n');

describe('a page is compared', () => {
  it.each(CASES)('by %s', (_name, shown, printed, isAlike) => {
    expect(new Likeness().difference(lines(shown), `${printed}\n`) === undefined).toBe(isAlike);
  });

  it('and says where it differs', () => {
    expect(new Likeness().difference(['one', 'two'], 'one\nthree\n')).toContain("'two'");
  });

  it('as far as a command has come that goes on', () => {
    const likeness = new Likeness();
    expect(likeness.differenceSoFar(['one'], 'one\ntwo')).toBeUndefined();
    expect(likeness.differenceSoFar(['one', 'two'], 'one\ntwo')).toBeDefined();
  });

  it('and what it calls something is called so from then on', () => {
    const likeness = new Likeness();
    const [shown, actual] = ['kubevirt-migrate-vm-aaaaa', 'kubevirt-migrate-vm-x7z9k'];
    const [one, other] = ['node-1 at 10.0.0.1:6443', 'node-3 at 127.0.0.1:41234'];
    expect(likeness.difference([`${shown} ${one}`], `${actual} ${other}`)).toBeUndefined();
    expect(likeness.translated(`kubectl delete vmim ${shown}; ${one}`)).toBe(`kubectl delete vmim ${actual}; ${other}`);
    expect(likeness.difference([shown], 'kubevirt-migrate-vm-other')).toBeDefined();
    expect(likeness.difference([`${shown} node-2`], `${actual} node-3`)).toBeUndefined();
    expect(likeness.translated('node-1 node-2')).toBe('node-3 node-3');
  });
});

describe('a page is read', () => {
  it('as commands, what they print, and files', () => {
    const page = [
      '```console',
      '$ one \\',
      '    two',
      'printed',
      '$ three',
      '```',
      '```yaml',
      '# a.yaml',
      'a: 1',
      '```',
      '```text',
      '$ not run',
      '```',
    ];
    expect(stepsOf(page.join('\n'))).toEqual([
      { kind: 'command', command: 'one \\\n    two', output: ['printed'], line: 2 },
      { kind: 'command', command: 'three', output: [], line: 5 },
      { kind: 'file', name: 'a.yaml', text: '# a.yaml\na: 1\n' },
    ]);
  });
});
