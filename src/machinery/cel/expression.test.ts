import { describe, expect, it } from 'vitest';
import type { Json } from '../../api/meta.ts';
import { compileExpression } from './expression.ts';

/** What the expressions below look at. The expected results are cel-go's, in Kubernetes' environment. */
const object = {
  metadata: { name: 'n', labels: { a: 'b', 'x/y': 'z' } },
  spec: {
    replicas: 3,
    items: [
      { n: 1, s: 'a' },
      { n: 2, s: 'b' },
    ],
    f: 1.5,
    nul: null,
    s: 'hello',
    emoji: 'a😀b',
  },
};

function evaluate(text: string): Json {
  return compileExpression(text, ['object', 'oldObject']).evaluate({ object, oldObject: undefined });
}

type Row = readonly [expression: string, result: Json];

describe('operators', () => {
  const rows: Row[] = [
    ['1 + 2 * 3', 7],
    ['object.spec.replicas + 1', 4],
    ['object.spec.replicas > 2 && object.spec.f < 2.0', true],
    ['object.spec.items[0].s', 'a'],
    ["object.metadata.labels['x/y']", 'z'],
    ["'a' in object.metadata.labels", true],
    ["'b' in ['a','b']", true],
    ['1 in [1,2]', true],
    ['oldObject == null', true],
    ['object == null', false],
    ['object.spec.nul == null', true],
    ['size(object.spec.s)', 5],
    ['object.spec.s.size()', 5],
    ['object.spec.emoji.size()', 3],
    ['5 / 2', 2],
    ['-5 / 2', -2],
    ['-5 % 3', -2],
    ['5.0 / 2.0', 2.5],
    ['1 < 1.5', true],
    ['1u < 2', true],
    ["'a' < 'b'", true],
    ["'a' + 'b'", 'ab'],
    ['[1] + [2]', [1, 2]],
    ["{'a': 1, 'b': 2}.size()", 2],
    ["{'a': 1}.a", 1],
    ["{'a': 1, 'a': 2}", { a: 2 }],
    ["{1: 'x'}[1]", 'x'],
    ['true ? 1 : 2', 1],
    ['true || 1/0 == 1', true],
    ['1/0 == 1 || true', true],
    ['false && 1/0 == 1', false],
    ['1/0 == 1 && false', false],
    ['!true', false],
    ['-5', -5],
    ['--5', 5],
    ['- 5', -5],
    ['!!true', true],
    ['object.spec.s == 1', false],
    ['"a\\tb\\x41\\u00e9\\U0001F600\\101"', 'a\tbAé😀A'],
    ["r'\\d+'", '\\d+'],
    ["b'abc' == b'\\x61bc'", true],
    ['0x1F', 31],
    ['1e3', 1000],
    ['1.5e-3', 0.0015],
    ['.5', 0.5],
    ['5u', 5],
    ['null == null', true],
    ['[null] == [null]', true],
    ['object.spec.replicas in [1,2,3]', true],
    ['object.spec.items == object.spec.items', true],
    ['object.spec.items[0] in object.spec.items', true],
    ['1 // trailing', 1],
    ['[1,2,3][dyn(1.0)]', 2],
    ["'a' in {'a': 1}", true],
    ['1 in {1: 2}', true],
    ['2 in {1: 2}', false],
    ["object.metadata.labels == {'a':'b','x/y':'z'}", true],
    ['size({})', 0],
    ['[] == []', true],
    ['{} == {}', true],
    ['[] + [1]', [1]],
    ['[[]] == [[]]', true],
    ['true < false', false],
    ["b'a' < b'b'", true],
    ["size(b'\\xc3\\xa9')", 2],
    ["'é'.size()", 1],
    ["'\\u00e9' == 'é'", true],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('conversions', () => {
  const rows: Row[] = [
    ["int('42')", 42],
    ['int(3.9)', 3],
    ['int(-3.9)', -3],
    ["double('1e5')", 100000],
    ['string(1.5)', '1.5'],
    ['string(1e21)', '1e+21'],
    ['string(1e-5)', '1e-05'],
    ['string(123456789.0)', '1.23456789e+08'],
    ['string(true)', 'true'],
    ["bool('true')", true],
    ['uint(5)', 5],
    ['type(1) == int', true],
    ["type('a') == string", true],
    ['type([1]) == list', true],
    ['type(object) == map', true],
    ['type(null) == null_type', true],
    ['type(1.0) == double', true],
    ['type(type(1)) == type', true],
    ['dyn(1) == 1.0', true],
    ['dyn(1) == dyn(1u)', true],
    ["dyn(1) == 'a'", false],
    ['int(object.spec.f)', 1],
    ['string(object.spec.replicas)', '3'],
    ['string(100000.0)', '100000'],
    ['string(1000000.0)', '1e+06'],
    ['string(1234567.5)', '1.2345675e+06'],
    ['string(0.0001)', '0.0001'],
    ['string(0.00001)', '1e-05'],
    ['string(-0.0)', '-0'],
    ['string(1.0)', '1'],
    ['string(123456.0)', '123456'],
    ["string(double('inf'))", '+Inf'],
    ['int(1u)', 1],
    ['double(3)', 3],
    ["uint('5')", 5],
    ['uint(3.7)', 3],
    ["bytes('é')", 'w6k='],
    ["dyn({'a':1}).a", 1],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('macros', () => {
  const rows: Row[] = [
    ['object.spec.items.all(i, i.n > 0)', true],
    ["object.spec.items.exists(i, i.s == 'b')", true],
    ['object.spec.items.exists_one(i, i.n == 2)', true],
    ['object.spec.items.map(i, i.n * 2)', [2, 4]],
    ['object.spec.items.map(i, i.n > 1, i.s)', ['b']],
    ['object.spec.items.filter(i, i.n > 1).size()', 1],
    ['has(object.spec.replicas)', true],
    ['has(object.spec.nope)', false],
    ["{'a': 1}.map(k, k)", ['a']],
    ["{'a': 1}.all(k, k == 'a')", true],
    ["{'a': 1, 'b': 2}.exists(k, v, v == 2)", true],
    ["{'a': 1, 'b': 2}.all(k, v, v > 0)", true],
    ['[1,2,3].all(i, v, i < v)', true],
    ['[1,2,3].transformList(i, v, i * v)', [0, 2, 6]],
    ['[1,2,3].transformList(i, v, i > 0, i * v)', [2, 6]],
    ["{'a': 1}.transformMap(k, v, v + 1)", { a: 2 }],
    ["{'a': 1}.transformMap(k, v, v > 5, v + 1)", {}],
    ["{'a': 'x'}.transformMapEntry(k, v, {v: k})", { x: 'a' }],
    ["[{'n':2},{'n':1}].sortBy(e, e.n)", [{ n: 1 }, { n: 2 }]],
    ['[1,2].exists(x, 1/(x-1) == 1)', true],
    ['has(object.spec.items[0].n)', true],
    ['object.spec.items.map(i, i.n).sum()', 3],
    ["object.spec.items.map(i, i.s).join(',')", 'a,b'],
    ['object.spec.items.map(i, i.n).max()', 2],
    ["has({'a':1}.a)", true],
    ['[1,2,3].exists_one(x, x > 1)', false],
    ['[[1,2],[3]].map(l, l.map(x, x * 2))', [[2, 4], [6]]],
    [
      '[1,2].map(x, [1,2].map(y, x * y))',
      [
        [1, 2],
        [2, 4],
      ],
    ],
    [
      '[1,2].map(x, [1,2].map(x, x))',
      [
        [1, 2],
        [1, 2],
      ],
    ],
    ['object.metadata.labels.all(k, k.size() > 0)', true],
    ["object.metadata.labels.exists(k, v, v == 'z')", true],
    ["{'b': 1, 'a': 2}.map(k, k).sort()", ['a', 'b']],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('optionals', () => {
  const rows: Row[] = [
    ['object.spec.?nope.orValue(5)', 5],
    ['object.spec.?replicas.orValue(5)', 3],
    ["object.?spec.?items[?5].?s.orValue('x')", 'x'],
    ['optional.of(1).hasValue()', true],
    ['optional.none().hasValue()', false],
    ['optional.of(1).value()', 1],
    ['optional.none().orValue(3)', 3],
    ['optional.of(1).or(optional.of(2)).value()', 1],
    ["optional.ofNonZeroValue('').hasValue()", false],
    ['optional.ofNonZeroValue(0).hasValue()', false],
    ['optional.of(3).optMap(x, x + 1).value()', 4],
    ['optional.none().optMap(x, x).hasValue()', false],
    ['optional.of(3).optFlatMap(x, optional.of(x)).value()', 3],
    ['[?optional.of(1), ?optional.none(), 2]', [1, 2]],
    ["{?'a': optional.none(), 'b': 1}", { b: 1 }],
    ['type(optional.of(1)) == optional_type', true],
    ["{'a':1}[?'b'].hasValue()", false],
    ["{'a':1}.?b.hasValue()", false],
    ['[1][?3].hasValue()', false],
    ["has(optional.of({'a':1}).a)", true],
    ["optional.of({'a':1}).a.hasValue()", true],
    ['optional.of([1])[0].hasValue()', true],
    ["optional.of({'a':{'b':1}}).?a.b.value()", 1],
    ['optional.of(1) == optional.of(1)', true],
    ['optional.none() == optional.none()', true],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('strings', () => {
  const rows: Row[] = [
    ['object.spec.emoji.charAt(1)', '😀'],
    ['object.spec.emoji.substring(1,2)', '😀'],
    ["object.spec.emoji.indexOf('b')", 2],
    ["'a,b,c'.split(',')", ['a', 'b', 'c']],
    ["'a,b,c'.split(',', 2)", ['a', 'b,c']],
    ["'a,b,c'.split(',', 0)", []],
    ["'a,b,c'.split(',', -1)", ['a', 'b', 'c']],
    ["'hello'.replace('l','L')", 'heLLo'],
    ["'hello'.replace('l','L',1)", 'heLlo'],
    ["'hello'.replace('','_')", '_h_e_l_l_o_'],
    ["'hello'.replace('','_',2)", '_h_ello'],
    ["'HeLLo'.lowerAscii()", 'hello'],
    ["'HeLLo'.upperAscii()", 'HELLO'],
    ["'  x '.trim()", 'x'],
    [`strings.quote('a"b\\n')`, '"a\\"b\\n"'],
    ["'tacocat'.lastIndexOf('c')", 4],
    ["'tacocat'.lastIndexOf('c', 4)", 4],
    ["'tacocat'.indexOf('a', 2)", 5],
    ["'tacocat'.indexOf('a', 20)", -1],
    ["'tacocat'.substring(3)", 'ocat'],
    ["'tacocat'.charAt(7)", ''],
    ["object.spec.s.startsWith('he')", true],
    ["object.spec.s.endsWith('lo')", true],
    ["object.spec.s.contains('ell')", true],
    ["'tacocat'.lastIndexOf('c', 20)", -1],
    ["'tacocat'.lastIndexOf('', 20)", 20],
    ["'tacocat'.lastIndexOf('')", 7],
    ["'tacocat'.indexOf('', 3)", 3],
    ["'tacocat'.indexOf('', 30)", 30],
    ["'tacocat'.lastIndexOf('cat', 6)", 4],
    ["'aaa'.replace('a','b',-1)", 'bbb'],
    ["'aaa'.replace('aa','b')", 'ba'],
    ["' \\t\\n x \\u00a0'.trim()", 'x'],
    ["'É'.lowerAscii()", 'É'],
    ["'a'.split('')", ['a']],
    ["'abc'.split('', 2)", ['a', 'bc']],
    ["''.split(',')", ['']],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('regular expressions', () => {
  const rows: Row[] = [
    ["object.spec.s.matches('^h.*o$')", true],
    ["'abc'.find('[a-b]+')", 'ab'],
    ["'abcabc'.findAll('[a-b]+')", ['ab', 'ab']],
    ["'abcabc'.findAll('[a-b]+', 1)", ['ab']],
    ["'ab'.matches('b')", true],
    ["matches('ab', 'b')", true],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});
