import { describe, expect, it } from 'vitest';
import { compileExpression } from './expression.ts';

/** Wording and places are cel-go's, in Kubernetes' environment. */
const object = {
  spec: { replicas: 3, items: [{ n: 1, s: 'a' }], s: 'hello' },
};

describe('expressions that fail at evaluation', () => {
  const rows: (readonly [expression: string, message: string])[] = [
    ['has(object.spec.nope.deeper)', 'no such key: nope'],
    ['object.spec.nope', 'no such key: nope'],
    ['object.spec.items[5].s', 'index out of bounds: 5'],
    ["'tacocat'.substring(5,2)", 'invalid substring range. start: 5, end: 2'],
    ["'tacocat'.charAt(8)", 'index out of range: 8'],
    ["timestamp('2020-05-06T07:08:09.123Z').getHours('Nowhere/Land')", 'unknown time zone Nowhere/Land'],
    ['1 / 0', 'division by zero'],
    ['1 % 0', 'modulus by zero'],
    ['9223372036854775807 + 1', 'integer overflow'],
    ['-9223372036854775808 - 1', 'integer overflow'],
    ['2u - 3u', 'unsigned integer overflow'],
    ["{'a': 1}['b']", 'no such key: b'],
    ['[].min()', 'min called on empty list'],
    ['[1,2,3].slice(1,5)', 'cannot slice(1, 5), list is length 3'],
    ['optional.none().value()', 'optional.none() dereference'],
    ["quantity('50m').asInteger()", 'cannot convert value to integer'],
    ["quantity('x')", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    ["semver('x')", 'No Major.Minor.Patch elements found'],
    ['1/0 == 1 || false', 'division by zero'],
    ['[1,2].all(x, 1/(x-1) == 1)', 'division by zero'],
    ['[1,2].exists_one(x, 1/(x-1) == 1)', 'division by zero'],
    ['object.spec.s + 1', 'no such overload'],
    ['object.spec.replicas.nope', 'no such key: nope'],
    ["object.spec.replicas.startsWith('x')", 'no such overload'],
    ["'x' in object.spec.s", 'no such overload'],
    ["'tacocat'.lastIndexOf('c', -1)", 'index out of range: -1'],
    ["'tacocat'.indexOf('c', -1)", 'index out of range: -1'],
    ["'tacocat'.substring(-1)", 'index out of range: -1'],
    ["'tacocat'.substring(8)", 'index out of range: 8'],
    ["'tacocat'.substring(2, 20)", 'index out of range: 20'],
    ["timestamp('9999-12-31T23:59:59Z') + duration('10s')", 'timestamp overflow'],
    ['dyn(1).a', 'no such key: a'],
    ["dyn('s')['a']", 'no such key: a'],
  ];
  it.each(rows)('%s', (text, message) => {
    const expression = compileExpression(text, ['object']);
    expect(() => expression.evaluate({ object })).toThrow(
      expect.objectContaining({ name: 'EvaluationError', message }),
    );
  });
});

describe('expressions that do not compile', () => {
  const rows: (readonly [expression: string, place: string, message: string])[] = [
    ["object.spec.s.matches('(')", '1:23', 'invalid matches argument'],
    ["'foo'.matches('[')", '1:15', 'invalid matches argument'],
    ["timestamp('nope')", '1:11', 'invalid timestamp argument'],
    ["duration('x')", '1:10', 'invalid duration argument'],
    ["duration('1d')", '1:10', 'invalid duration argument'],
    ['9223372036854775808', '1:1', 'invalid int literal'],
    ['1 == 1.0', '1:3', "found no matching overload for '_==_' applied to '(int, double)'"],
    ["'a' + 1", '1:5', "found no matching overload for '_+_' applied to '(string, int)'"],
    ['[1] == [1.0]', '1:5', "found no matching overload for '_==_' applied to '(list(int), list(double))'"],
    ["[1, 'a']", '1:5', "expected type 'int' but found 'string'"],
    ["{1: 'x'}[1u]", '1:9', "found no matching overload for '_[_]' applied to '(map(int, string), uint)'"],
    [
      "{'a': 1} == {'a': 1.0}",
      '1:10',
      "found no matching overload for '_==_' applied to '(map(string, int), map(string, double))'",
    ],
    ["['a'].sum()", '1:10', "found no matching overload for 'sum' applied to 'list(string).()'"],
    ["true ? 1 : 'a'", '1:6', "found no matching overload for '_?_:_' applied to '(bool, int, string)'"],
    ['1 ? 1 : 2', '1:3', "found no matching overload for '_?_:_' applied to '(int, int, int)'"],
    ['!1', '1:1', "found no matching overload for '!_' applied to '(int)'"],
    ["'a' == 1", '1:5', "found no matching overload for '_==_' applied to '(string, int)'"],
    ['foo', '1:1', "undeclared reference to 'foo' (in container '')"],
    ['foo(1)', '1:4', "undeclared reference to 'foo' (in container '')"],
    ['object.foo()', '1:11', "undeclared reference to 'foo' (in container '')"],
    ['size(1)', '1:5', "found no matching overload for 'size' applied to '(int)'"],
    ["'abc'.nope()", '1:11', "undeclared reference to 'nope' (in container '')"],
    ['a.b.c', '1:1', "undeclared reference to 'a' (in container '')"],
    ['if', '1:1', 'reserved identifier: if'],
    ['18446744073709551616u', '1:1', 'invalid uint literal'],
    ['null == 1', '1:6', "found no matching overload for '_==_' applied to '(null, int)'"],
    ['has(object)', '1:5', 'invalid argument to has() macro'],
    ["has(object.spec['s'])", '1:16', 'invalid argument to has() macro'],
    ['object.spec.items.map(i.n, 1)', '1:24', 'argument is not an identifier'],
    ['object.spec.items.map(x, y)', '1:26', "undeclared reference to 'y' (in container '')"],
    [
      '1.all(x, true)',
      '1:1',
      "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
    ],
    ['object.spec.items.all(i, 1)', '1:26', "expected type 'bool' but found 'int'"],
    ["type(quantity('1')) == kubernetes.Quantity", '1:24', "undeclared reference to 'kubernetes' (in container '')"],
    ["dyn([1,'a']).sum()", '1:8', "expected type 'int' but found 'string'"],
    ["object.spec.items[0] == {'n': 1, 's': 'a'}", '1:39', "expected type 'int' but found 'string'"],
    ["type(url('http://x')) == kubernetes.URL", '1:26', "undeclared reference to 'kubernetes' (in container '')"],
    ["type(semver('1.0.0')) == kubernetes.Semver", '1:26', "undeclared reference to 'kubernetes' (in container '')"],
    ['type(format.uri()) == kubernetes.NamedFormat', '1:23', "undeclared reference to 'kubernetes' (in container '')"],
    ['[1,2,3][1.0]', '1:8', "found no matching overload for '_[_]' applied to '(list(int), double)'"],
    ['[1,2,3][1u]', '1:8', "found no matching overload for '_[_]' applied to '(list(int), uint)'"],
    [
      "optional.of(1).orValue('x')",
      '1:23',
      "found no matching overload for 'orValue' applied to 'optional_type(int).(string)'",
    ],
    ['1u in {1: 2}', '1:4', "found no matching overload for '@in' applied to '(uint, map(int, int))'"],
    ["-duration('1s')", '1:1', "found no matching overload for '-_' applied to '(duration)'"],
    ["duration('1h') * 2", '1:16', "found no matching overload for '_*_' applied to '(duration, int)'"],
    ['1 + 1.0', '1:3', "found no matching overload for '_+_' applied to '(int, double)'"],
    ['1u + 1', '1:4', "found no matching overload for '_+_' applied to '(uint, int)'"],
    ['[1, 2].join()', '1:12', "found no matching overload for 'join' applied to 'list(int).()'"],
    ['[1, 2.0]', '1:5', "expected type 'int' but found 'double'"],
    ['[1, null]', '1:5', "expected type 'int' but found 'null'"],
    ["[{'a':1},{'b':'x'}]", '1:10', "expected type 'map(string, int)' but found 'map(string, string)'"],
  ];
  it.each(rows)('%s', (text, place, message) => {
    expect(() => compileExpression(text, ['object'])).toThrow(`ERROR: <input>:${place}: ${message}\n | `);
  });

  it('lists every mistake once, each with its line and a mark', () => {
    expect(() => compileExpression('foo + 1 == 2 &&\n  bar', ['object'])).toThrow(
      [
        "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')",
        ' | foo + 1 == 2 &&',
        ' | ^',
        "ERROR: <input>:2:3: undeclared reference to 'bar' (in container '')",
        ' |   bar',
        ' | ..^',
      ].join('\n'),
    );
  });
});
