import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CompiledRule, combinedResource, type PolicyRule } from './policy-rule.ts';
import { BREAKDOWN_MAX, MISSING_MAX, compactRules, missingRules } from './rule-coverage.ts';

const rule = (verbs: string, groups: string, resources: string, names = ''): PolicyRule => ({
  verbs: verbs.split(','),
  apiGroups: groups.split(','),
  resources: resources.split(','),
  ...(names === '' ? {} : { resourceNames: names.split(',') }),
});
const url = (verbs: string, paths: string): PolicyRule => ({
  verbs: verbs.split(','),
  nonResourceURLs: paths.split(','),
});

describe('missingRules', () => {
  const table: [name: string, held: PolicyRule[], wanted: PolicyRule[], missing: PolicyRule[]][] = [
    ['the same', [rule('get', '', 'pods')], [rule('get', '', 'pods')], []],
    ['nothing held', [], [rule('get', '', 'pods')], [rule('get', '', 'pods')]],
    ['nothing wanted', [], [], []],
    [
      'two halves that make a whole',
      [rule('get', '', 'pods,nodes'), rule('list', '', 'pods,nodes')],
      [rule('get,list', '', 'pods,nodes')],
      [],
    ],
    [
      'one corner missing',
      [rule('get,list', '', 'pods'), rule('get', '', 'nodes')],
      [rule('get,list', '', 'pods,nodes')],
      [rule('list', '', 'nodes')],
    ],
    ['every verb', [rule('*', '', 'pods')], [rule('get,frob', '', 'pods')], []],
    ['a star from many verbs', [rule('get,list', '', 'pods')], [rule('*', '', 'pods')], [rule('*', '', 'pods')]],
    ['every group', [rule('get', '*', 'pods')], [rule('get', 'x.io', 'pods')], []],
    ['a star group from one', [rule('get', '', 'pods')], [rule('get', '*', 'pods')], [rule('get', '*', 'pods')]],
    ['every resource', [rule('get', '', '*')], [rule('get', '', 'pods,pods/status,*/scale,*')], []],
    [
      'a subresource from its resource',
      [rule('get', '', 'pods')],
      [rule('get', '', 'pods/log')],
      [rule('get', '', 'pods/log')],
    ],
    ['a subresource of anything', [rule('get', '', '*/scale')], [rule('get', '', 'pods/scale,*/scale')], []],
    [
      'anything from one subresource',
      [rule('get', '', 'pods/scale')],
      [rule('get', '', '*/scale')],
      [rule('get', '', '*/scale')],
    ],
    ['names from all', [rule('get', '', 'pods')], [rule('get', '', 'pods', 'a,b')], []],
    ['all from names', [rule('get', '', 'pods', 'a')], [rule('get', '', 'pods')], [rule('get', '', 'pods')]],
    [
      'other names',
      [rule('get', '', 'pods', 'a'), rule('get', '', 'pods', 'b')],
      [rule('get', '', 'pods', 'a,b,c')],
      [rule('get', '', 'pods', 'c')],
    ],
    ['paths', [url('get', '/a/*')], [url('get', '/a/,/a/b,/a/*,/a/b/*')], []],
    ['wider paths', [url('get', '/a/*')], [url('get', '/a,/*')], [url('get', '/a'), url('get', '/*')]],
    ['every path', [url('*', '*')], [url('get,post', '/x,/y/*,*')], []],
    ['resources from paths', [url('*', '*')], [rule('get', '', 'pods')], [rule('get', '', 'pods')]],
  ];
  it.each(table)('%s', (_name, held, wanted, missing) => {
    expect(missingRules(held, wanted)).toEqual(missing);
  });

  it('does not break down a product that is too large, unless someone holds it in one piece', () => {
    const many = Array.from({ length: 1000 }, (_, index) => `x${index}`);
    const huge: PolicyRule = { verbs: many, apiGroups: many, resources: many, resourceNames: many };
    expect(many.length ** 4).toBeGreaterThan(BREAKDOWN_MAX);
    expect(missingRules([rule('get', '', 'pods')], [huge])).toEqual([huge]);
    expect(missingRules([rule('*', '*', '*')], [huge])).toEqual([]);
  });

  it('finds nothing missing only where whatever is wanted is held', () => {
    const some = (...values: string[]) => fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 3 });
    const rules = fc.array(
      fc.record(
        {
          verbs: some('get', 'list', '*'),
          apiGroups: some('', 'apps', '*'),
          resources: some('pods', 'pods/scale', '*/scale', 'nodes', '*'),
          resourceNames: some('a', 'b'),
        },
        { requiredKeys: ['verbs', 'apiGroups', 'resources'] },
      ),
      { maxLength: 4 },
    );
    const request = fc.record({
      verb: fc.constantFrom('get', 'list', 'frob'),
      isResource: fc.constant(true),
      path: fc.constant(''),
      group: fc.constantFrom('', 'apps', 'x.io'),
      namespace: fc.constant(''),
      resource: fc.constantFrom('pods', 'nodes', 'things'),
      subresource: fc.constantFrom('', 'scale', 'log'),
      name: fc.constantFrom('', 'a', 'b', 'c'),
    });
    const allows = (given: readonly PolicyRule[], wanted: Parameters<CompiledRule['allows']>[0]): boolean =>
      given.some((each) => new CompiledRule(each).allows(wanted, combinedResource(wanted)));
    fc.assert(
      fc.property(rules, rules, fc.array(request, { minLength: 20, maxLength: 40 }), (held, wanted, requests) => {
        const missing = missingRules(held, wanted);
        for (const each of requests) {
          if (allows(wanted, each) && !allows(held, each)) expect(allows(missing, each)).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('roles of many rules', () => {
  const values = (prefix: string): string[] => Array.from({ length: 27 }, (_, index) => `${prefix}${index}`);
  const wide = { apiGroups: values('g'), resources: values('r'), verbs: values('v') };

  it('are reported missing as they are once breaking them down has cost enough', () => {
    const missing = missingRules(
      [],
      Array.from({ length: 8000 }, () => wide),
    );
    expect(missing.length).toBeLessThan(BREAKDOWN_MAX + MISSING_MAX);
    expect(missing.length).toBeGreaterThan(0);
  });

  it('are found covered however many they are', () =>
    expect(
      missingRules(
        [rule('*', '*', '*')],
        Array.from({ length: 8000 }, () => wide),
      ),
    ).toEqual([]));
});

describe('compactRules', () => {
  it('joins the verbs of one target', () => {
    expect(
      compactRules([
        rule('get', '', 'pods'),
        rule('get', '', 'nodes'),
        rule('list', '', 'pods'),
        rule('get', '', 'pods', 'a'),
      ]),
    ).toEqual([rule('get,list', '', 'pods'), rule('get', '', 'nodes'), rule('get', '', 'pods', 'a')]);
  });
});
