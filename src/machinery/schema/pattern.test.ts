import { describe, expect, it } from 'vitest';
import { compileSchema } from './compile.ts';
import { compilePattern, isCompiled } from './pattern.ts';

/** Patterns that take a step for each instruction at each character: a count is as many instructions. */
const COSTLY = ['a[abc]{999}c$', '(?:a[abc]{0,31}){31}c$', '(a.{0,300}b.{0,300}a.{0,300})c$'];

describe('patterns', () => {
  it('find what they match, in order', () => {
    expect([...compilePattern('[0-9]+').find('a1b22c333')]).toEqual(['1', '22', '333']);
    expect(compilePattern('^a+$').test('aaa')).toBe(true);
    expect(isCompiled('^a+$')).toBe(true);
    expect(isCompiled('never seen')).toBe(false);
  });

  it.each(['(', 'a{1001}', '((a{100}){100}){100}', 'a'.repeat(20_000)])('refuse %s', (source) =>
    expect(() => compilePattern(source)).toThrow('error parsing regexp'),
  );

  it('say what they cost', () => {
    expect(compilePattern('a{1000}').stepsFor('x'.repeat(99))).toBeGreaterThan(100_000);
    expect(compilePattern('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$').stepsFor('x'.repeat(63))).toBeLessThan(2000);
  });

  it.each(COSTLY)('%s is not matched with a text that would take minutes', (pattern) => {
    const schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { t: { type: 'string', pattern } } } },
    } as const;
    const text = `c${'ab'.repeat(1_000_000)}`;
    const [error] = compileSchema(schema).validate({ spec: { t: text } });
    expect(error).toMatchObject({
      field: 'spec.t',
      message: expect.stringContaining(`too long to be matched with '${pattern}'`),
    });
    expect(compileSchema(schema).validate({ spec: { t: 'c'.repeat(1000) } })[0]?.message).toContain('should match');
  });

  it('share what all texts of an object may cost', () => {
    const schema = {
      type: 'object',
      properties: { list: { type: 'array', items: { type: 'string', pattern: COSTLY[0] } } },
    } as const;
    const list = Array.from({ length: 100 }, () => `c${'ab'.repeat(10_000)}`);
    expect(compileSchema(schema).validate({ list }).at(-1)?.message).toContain('too long to be matched');
  });
});
