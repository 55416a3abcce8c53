import { describe, expect, it } from 'vitest';
import { parseRequirements } from './label-requirements.ts';

const parse = (text: string): object[] => parseRequirements(text, 256);

describe('requirements on labels', () => {
  it.each([
    ['a', [{ key: 'a', operator: 'Exists', values: [] }]],
    ['!a', [{ key: 'a', operator: 'DoesNotExist', values: [] }]],
    ['a=b', [{ key: 'a', operator: 'In', values: ['b'] }]],
    ['a = b', [{ key: 'a', operator: 'In', values: ['b'] }]],
    ['a==', [{ key: 'a', operator: 'In', values: [''] }]],
    ['a!=b', [{ key: 'a', operator: 'NotIn', values: ['b'] }]],
    ['a>1', [{ key: 'a', operator: 'GreaterThan', values: ['1'] }]],
    ['a < 1', [{ key: 'a', operator: 'LessThan', values: ['1'] }]],
    ['a in(b , c)', [{ key: 'a', operator: 'In', values: ['b', 'c'] }]],
    ['a notin (b,b)', [{ key: 'a', operator: 'NotIn', values: ['b'] }]],
    ['a in ()', [{ key: 'a', operator: 'In', values: [''] }]],
    ['a in (,b)', [{ key: 'a', operator: 'In', values: ['', 'b'] }]],
    ['a in (b,)', [{ key: 'a', operator: 'In', values: ['b', ''] }]],
    ['in in (in,notin)', [{ key: 'in', operator: 'In', values: ['in', 'notin'] }]],
    ['notin', [{ key: 'notin', operator: 'Exists', values: [] }]],
    [
      'a=in,!b',
      [
        { key: 'a', operator: 'In', values: ['in'] },
        { key: 'b', operator: 'DoesNotExist', values: [] },
      ],
    ],
    ['  ', []],
  ])('reads %j', (text, expected) => expect(parse(text)).toEqual(expected));

  const NAME =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

  // Word for word what kube-apiserver 1.34 answers.
  it.each([
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['a gt 1', "unable to parse requirement: found 'gt', expected: in, notin, =, ==, !=, gt, lt"],
    ['a!b', "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"],
    ['a)', "unable to parse requirement: found ')', expected: in, notin, =, ==, !=, gt, lt"],
    ['a=b c', "found 'c', expected: ',' or 'end of string'"],
    ['a=b=c', "found '=', expected: ',' or 'end of string'"],
    ['!a=b', "found '=', expected: ',' or 'end of string'"],
    ['a=b,', "found '', expected: identifier after ','"],
    ['a=b,,c', "found ',', expected: identifier after ','"],
    ['=a', "found '=', expected: !, identifier, or 'end of string'"],
    ['(a)', "found '(', expected: !, identifier, or 'end of string'"],
    [',a', "found ',', expected: !, identifier, or 'end of string'"],
    ['a===b', "unable to parse requirement: found '=', expected: identifier"],
    ['a=>b', "unable to parse requirement: found '>', expected: identifier"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    ['!!a', "unable to parse requirement: found '!', expected: identifier"],
    ['a in', "unable to parse requirement: found '' expected: '('"],
    ['a in b', "unable to parse requirement: found 'b' expected: '('"],
    ['a in (', "unable to parse requirement: found '', expected: ',', ')' or identifier"],
    ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['a in (b c)', "unable to parse requirement: found 'c', expected: ',' or ')'"],
    ['a in (b,', "unable to parse requirement: found '', expected: ',', or identifier"],
    ['-a', `unable to parse requirement: <nil>: Invalid value: "-a": name part ${NAME}`],
    ['/a', 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'],
    [
      'a<x',
      `unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`,
    ],
    [
      `a=${'x'.repeat(64)}`,
      `unable to parse requirement: values[0][a]: Invalid value: "${'x'.repeat(64)}": must be no more than 63 characters`,
    ],
  ])('refuses %j', (text, message) => {
    let refusal: unknown;
    try {
      parse(text);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toMatchObject({ code: 400, message });
  });

  it('takes as many as it is told to', () => {
    expect(parseRequirements('a,b', 2)).toHaveLength(2);
    expect(() => parseRequirements('a,b,c', 2)).toThrow('at most 2 requirements');
  });
});
