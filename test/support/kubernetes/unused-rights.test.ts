import { describe, expect, it } from 'vitest';
import type { Right } from '../../../src/cli/manifests/rights-page.fixture.ts';
import { linesOf, unusedRights, type Use } from './unused-rights.ts';

const RIGHT: Right = {
  holder: 'controller',
  where: 'everywhere',
  group: '',
  resource: 'pods',
  names: [],
  verbs: ['create'],
};
const USE: Use = { holder: 'controller', verb: 'create', group: '', resource: 'pods', name: 'p', namespace: 'shop' };

/** The verbs, with names, that stay unused. */
function left(right: Partial<Right>, ...uses: readonly Partial<Use>[]): string[] {
  const unused = unusedRights(
    [{ ...RIGHT, ...right }],
    uses.map((use) => ({ ...USE, ...use })),
  );
  return unused.map((line) => line.split(' | ').slice(3).join(' '));
}

describe('rights', () => {
  it('are said line by line: who, where, group, what, verb', () => {
    const named = { ...RIGHT, where: 'kubevirt', group: 'apps', resource: 'x/status', names: ['a', 'b'] };
    expect(linesOf([{ ...RIGHT, verbs: ['get', 'create'] }, named])).toEqual([
      'controller | everywhere | core | pods | get',
      'controller | everywhere | core | pods | create',
      'controller | kubevirt | apps | x/status a | create',
      'controller | kubevirt | apps | x/status b | create',
    ]);
  });

  it('are unused where nothing was asked', () =>
    expect(left({ verbs: ['create', 'delete'] })).toEqual(['pods create', 'pods delete']));

  it('are used by who has them, for this verb, group and resource', () => {
    expect(left({}, {})).toEqual([]);
    for (const other of [{ holder: 'extension' }, { verb: 'patch' }, { group: 'apps' }, { resource: 'nodes' }])
      expect(left({}, other)).toEqual(['pods create']);
  });

  it('to a subresource are others than to what it is of', () => {
    expect(left({}, { resource: 'pods/eviction' })).toEqual(['pods create']);
    expect(left({ resource: 'pods/eviction' }, {})).toEqual(['pods/eviction create']);
    expect(left({ resource: 'pods/eviction' }, { resource: 'pods/eviction' })).toEqual([]);
  });

  it('of a namespace are used there alone', () => {
    expect(left({ where: 'kubevirt' }, {}, { namespace: '' })).toEqual(['pods create']);
    expect(left({ where: 'kubevirt' }, { namespace: 'kubevirt' })).toEqual([]);
  });

  it('of names are judged name by name', () =>
    expect(left({ names: ['p', 'q'], verbs: ['patch', 'create'] }, {})).toEqual([
      'pods p patch',
      'pods q patch',
      'pods q create',
    ]));

  it('to everything are used by anything', () => {
    expect(left({ group: '*', resource: '*', verbs: ['*'] }, {})).toEqual([]);
    expect(left({ group: 'apps', resource: '*' }, {})).toEqual(['* create']);
  });
});

describe('rights to read', () => {
  const verbs = ['get', 'list', 'watch'];

  it('are needed by who lists or watches', () => {
    expect(left({ verbs }, { verb: 'watch', name: '' })).toEqual([]);
    expect(left({ verbs }, { verb: 'list', name: '' })).toEqual([]);
  });
  it('are more than needed by who gets objects one by one', () =>
    expect(left({ verbs }, { verb: 'get' })).toEqual(['pods list', 'pods watch']));
  it('of one name are one, however it is read', () =>
    expect(left({ verbs, names: ['p'] }, { verb: 'get' })).toEqual([]));
  it('are not shown by a write', () => expect(left({ verbs: ['get'] }, { verb: 'patch' })).toEqual(['pods get']));
});
