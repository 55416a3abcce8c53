import { Environment } from '@marcbachmann/cel-js';
import { assert, type Arbitrary, constantFrom, letrec, oneof, property, record, tuple } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileExpression } from './expression.ts';

/**
 * Random expressions, evaluated by cel-js too: an independent implementation, good enough as a witness for the core of
 * the language. The generator keeps to what both define alike.
 */

interface Expressions {
  int: string;
  bool: string;
  text: string;
  list: string;
}

const join = (...parts: (Arbitrary<unknown> | string)[]): Arbitrary<string> =>
  tuple(...parts.map((part) => (typeof part === 'string' ? constantFrom(part) : part))).map((texts) => texts.join(''));

const expressions = letrec<Expressions>((tie) => ({
  int: oneof(
    { maxDepth: 3 },
    constantFrom('0', '1', '2', '7', '-3', 'object.n', 'object.zero'),
    join('(', tie('int'), ' ', constantFrom('+', '-', '*', '/', '%'), ' ', tie('int'), ')'),
    join('(', tie('bool'), ' ? ', tie('int'), ' : ', tie('int'), ')'),
    join('size(', oneof(tie('text'), tie('list')), ')'),
    join(tie('list'), '[', tie('int'), ']'),
    join('(-(', tie('int'), '))'),
  ),
  bool: oneof(
    { maxDepth: 3 },
    constantFrom('true', 'false', 'object.yes', 'has(object.n)', 'has(object.absent)'),
    join('(', tie('int'), ' ', constantFrom('<', '<=', '>', '>=', '==', '!='), ' ', tie('int'), ')'),
    join('(', tie('text'), ' ', constantFrom('<', '==', '!='), ' ', tie('text'), ')'),
    join('(', tie('bool'), ' ', constantFrom('&&', '||', '=='), ' ', tie('bool'), ')'),
    join('!', tie('bool')),
    join('(', tie('int'), ' in ', tie('list'), ')'),
    join('(', tie('list'), ' == ', tie('list'), ')'),
    join(tie('list'), constantFrom('.all', '.exists', '.exists_one'), '(i, i > ', tie('int'), ')'),
    join(tie('text'), constantFrom('.startsWith', '.endsWith', '.contains'), '(', tie('text'), ')'),
  ),
  text: oneof(
    { maxDepth: 3 },
    constantFrom("''", "'a'", "'ab'", 'object.s', "'é'"),
    join('(', tie('text'), ' + ', tie('text'), ')'),
    join('string(', tie('int'), ')'),
    join('(', tie('bool'), ' ? ', tie('text'), ' : ', tie('text'), ')'),
  ),
  list: oneof(
    { maxDepth: 3 },
    constantFrom('[1, 2, 3]', '[0]', 'object.l'),
    join('[', tie('int'), ', ', tie('int'), ']'),
    join('(', tie('list'), ' + ', tie('list'), ')'),
    join(tie('list'), '.map(i, i + ', tie('int'), ')'),
    join(tie('list'), '.filter(i, i != ', tie('int'), ')'),
  ),
}));

const object = { n: 5, zero: 0, yes: true, s: 'hello', l: [4, 5, 6] };
const other = new Environment({ homogeneousAggregateLiterals: false }).registerVariable('object', 'dyn');
const otherObject = { n: 5n, zero: 0n, yes: true, s: 'hello', l: [4n, 5n, 6n] };

function attempt(evaluate: () => unknown): string {
  try {
    return JSON.stringify(evaluate(), (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value));
  } catch {
    return 'failed';
  }
}

describe('expressions mean what cel-js takes them to mean', () => {
  it('for any expression over numbers, text, lists and truth', () => {
    let evaluated = 0;
    const any = oneof(expressions.int, expressions.bool, expressions.text, expressions.list);
    assert(
      property(record({ text: any }), ({ text }) => {
        const ours = attempt(() => compileExpression(text, ['object']).evaluate({ object }));
        const theirs = attempt(() => other.evaluate(text, { object: otherObject }));
        expect(`${text} = ${ours}`).toBe(`${text} = ${theirs}`);
        if (ours !== 'failed') evaluated++;
      }),
      { numRuns: 2000 },
    );
    expect(evaluated).toBeGreaterThan(500);
  });
});
