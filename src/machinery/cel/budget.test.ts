import { describe, expect, it } from 'vitest';
import type { Json } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { compileSchema } from '../schema/compile.ts';
import { compileExpression } from './expression.ts';

const str: Schema = { type: 'string' };
const strings: Schema = { type: 'array', items: str };
const many = Array.from({ length: 20_000 }, (_, index) => `item${index}`);

/** Longer than any evaluation may take even on a machine that is busy with other things. */
const PATIENCE_MS = 5_000;

function evaluate(rule: string, properties: Record<string, Schema>, value: Json): string[] {
  const node: Schema = { type: 'object', properties, 'x-kubernetes-validations': [{ rule }] };
  const compiled = compileSchema({ type: 'object', properties: { spec: node } });
  const start = performance.now();
  const errors = compiled.validate({ spec: value }).map((error) => error.message);
  expect(performance.now() - start).toBeLessThan(PATIENCE_MS);
  return errors;
}

describe('the budget of rules', () => {
  it.each<[string, string]>([
    ['nested walks', 'self.l.all(a, self.l.all(b, self.l.all(c, a != b || b != c || true)))'],
    ['quadratic walks', 'self.l.all(x, self.l.exists_one(y, x == y))'],
    ['lists of lists', 'self.l.map(x, self.l).map(y, y.map(z, z)).size() > 0'],
    ['lists that double', doubling('self.l', 12)],
    ['strings that double', doubling('self.s', 30)],
    ['replacing every letter by everything', 'self.s.replace("", self.s).size() > 0'],
    ['formatting everything again and again', 'self.l.map(x, "%s".format([self.l])).size() > 0'],
    ['searching from every place', 'self.s.split("").map(c, self.s.indexOf(c)).sum() > 0'],
    ['needles as large as the haystack', '(self.s + self.s).contains(self.s + "b")'],
    ['time zones', 'self.l.all(x, timestamp(0).getHours("Europe/Berlin") >= 0)'],
    ['comparing everything with everything', 'self.l.map(x, self.l == self.l).size() > 0'],
    ['patterns that count', 'self.s.matches("a[ab]{999}c$")'],
    ['patterns that are data', 'self.l.all(x, "x".matches("((" + x + "{30}){30})") || true)'],
    ['matches that are looked for to the end of the text', 'self.s.findAll("a.*b|a").size() > 0'],
    ['removing duplicates of what is not text', 'self.l.map(x, [x]).distinct().size() > 0'],
  ])('ends %s', (_, rule) => {
    const value = { l: many, s: 'a'.repeat(100_000) };
    const [error] = evaluate(rule, { l: strings, s: str }, value);
    expect(error).toContain('operation cancelled: actual cost limit exceeded');
    expect(error).toContain('no further validation rules will be run due to call cost exceeds limit for rule');
  });

  it('cannot be escaped by operators that absorb errors', () => {
    const costly = 'self.l.all(x, self.l.all(y, x != y || true))';
    for (const rule of [`${costly} || true`, `[1].exists(i, ${costly} || i == 1)`, `!(${costly} && false)`]) {
      expect(evaluate(rule, { l: strings }, { l: many })[0]).toContain('actual cost limit exceeded');
    }
  });

  it('is shared by all rules of an object, and the rest are skipped when it is gone', () => {
    const rule = 'self.all(x, [1, 2, 3, 4, 5].all(y, y > 0))';
    const node: Schema = { ...strings, 'x-kubernetes-validations': [{ rule }] };
    const names = Array.from({ length: 30 }, (_, index) => `f${index}`);
    const schema: Schema = { type: 'object', properties: Object.fromEntries(names.map((name) => [name, node])) };
    const object = Object.fromEntries(names.map((name) => [name, many.slice(0, 15_000)]));
    const errors = compileSchema(schema).validate(object);
    expect(errors.map((error) => error.message)).toEqual([
      'Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run',
    ]);
  });

  it('covers expressions without a schema', () => {
    const expression = compileExpression('object.l.all(a, object.l.all(b, a != b || true))', ['object']);
    expect(() => expression.evaluate({ object: { l: many } })).toThrow('actual cost limit exceeded');
  });

  it('leaves room for what real rules do', () => {
    expect(evaluate('self.l.all(x, x.startsWith("item") && x.size() < 64)', { l: strings }, { l: many })).toEqual([]);
    expect(evaluate('self.l.sort().size() == self.l.size()', { l: strings }, { l: many })).toEqual([]);
  });
});

describe('regular expressions', () => {
  it.each(['^(a+)+$', '(x+x+)+y', '^(([a-z])+.)+[A-Z]([a-z])+$', '(a|aa)*$b', '(.*)(.*)(.*)(.*)(.*)[^a]$'])(
    '%s is linear in rules and in patterns',
    (pattern) => {
      const text = `${'a'.repeat(50_000)}!`;
      const rule = `self.s.matches(r'${pattern}') || true`;
      evaluate(rule, { s: str }, { s: text });
      const start = performance.now();
      compileSchema({ type: 'object', properties: { s: { ...str, pattern } } }).validate({ s: text });
      expect(performance.now() - start).toBeLessThan(PATIENCE_MS);
    },
  );
});

describe('hostile sources', () => {
  const compile = (text: string) => (): unknown => compileExpression(text, ['self']);

  it('are refused before they could overflow a stack', () => {
    expect(compile(`${'('.repeat(1000)}1${')'.repeat(1000)}`)).toThrow('recursion limit');
    expect(compile(`${'['.repeat(1000)}1${']'.repeat(1000)}`)).toThrow('recursion limit');
    expect(compile(Array.from({ length: 5000 }, () => '1').join('+'))).toThrow('too deeply nested');
    expect(compile(`self${'.a'.repeat(5000)}`)).toThrow('too deeply nested');
    expect(compile(`${'!'.repeat(5000)}true`)).not.toThrow();
    expect(compile(Array.from({ length: 5000 }, () => 'true').join('&&'))).not.toThrow();
    expect(compile('1'.repeat(200_000))).toThrow('size exceeds limit');
  });

  it('see data under names of the language as data', () => {
    const object = JSON.parse('{"__proto__": {"x": 1}, "constructor": 2, "toString": "t"}') as Json;
    const evaluate = (text: string): Json => compileExpression(text, ['object']).evaluate({ object });
    expect(evaluate('object.constructor')).toBe(2);
    expect(evaluate('object.__proto__.x')).toBe(1);
    expect(evaluate('has(object.hasOwnProperty) || has(object.valueOf)')).toBe(false);
    expect(evaluate('object.toString')).toBe('t');
    expect(JSON.stringify(evaluate('object'))).toBe(JSON.stringify(object));
    expect(JSON.stringify(evaluate("{'__proto__': 1}"))).toBe('{"__proto__":1}');
  });
});

function doubling(seed: string, times: number): string {
  let text = `v${times}.size() > 0`;
  for (let index = times; index > 0; index--) {
    const before = index === 1 ? seed : `v${index - 1}`;
    text = `cel.bind(v${index}, ${before} + ${before}, ${text})`;
  }
  return text;
}
