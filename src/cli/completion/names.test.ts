import { describe, expect, it } from 'vitest';
import { program } from '../program.ts';
import { commandTree } from './command-tree.ts';
import { offered, wantedNames } from './names.ts';

const tree = commandTree(program);

describe('names that can follow', () => {
  it.each<[string, readonly string[] | undefined]>([
    ['migrate', ['vm']],
    ['drain', ['node']],
    ['why', ['vm', 'vmi', 'migration', 'node']],
    ['why node', ['node']],
    ['why web', undefined],
    ['why node node-1', undefined],
    ['pause vmi', ['vmi']],
    ['policy explain', ['vm']],
    ['policy', undefined],
    ['migrate web', undefined],
    ['migrate --watch', ['vm']],
    ['up', undefined],
    ['', undefined],
  ])('"%s" are of %j', (typed, kinds) => {
    expect(wantedNames(tree, typed.split(' ').filter(Boolean))?.kinds).toEqual(kinds);
  });

  it('are those of the cluster and the namespace that were typed', () => {
    const typed = ['stop', '-n', 'shop', '--context=west', '--kubeconfig', '/k'];
    expect(wantedNames(tree, typed)?.cluster).toEqual({ namespace: 'shop', context: 'west', kubeconfig: '/k' });
    expect(wantedNames(tree, ['stop', '-n'])?.cluster).toEqual({});
  });

  it('are those that whoever was typed may see', () => {
    const typed = '--as jane --as-group a --as-group=b -s https://x --token t --insecure-skip-tls-verify';
    expect(wantedNames(tree, ['stop', ...typed.split(' ')])).toEqual({
      kinds: ['vm'],
      cluster: { as: 'jane', asGroup: ['a', 'b'], server: 'https://x', token: 't', insecureSkipTlsVerify: true },
    });
  });

  it('are nothing that a shell would take for a command', () => {
    expect(offered(['web', 'a.b-1', '$(touch x)', '`x`', 'a b', '-rf', 'web', ''])).toEqual(['a.b-1', 'web']);
  });
});
