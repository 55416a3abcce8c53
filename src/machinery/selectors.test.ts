import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../api/status.ts';
import { labelSelectorText, parseFieldSelector, parseLabelSelector, selectorFrom } from './selectors.ts';

describe('label selectors', () => {
  const labels = { app: 'web', tier: 'front', size: '12' };
  it.each([
    ['', true],
    ['app=web', true],
    ['app==web,tier=front', true],
    ['app!=web', false],
    ['other!=web', true],
    ['app in (web, db)', true],
    ['app notin (web,db)', false],
    ['missing notin (web)', true],
    ['app', true],
    ['!app', false],
    ['! missing', true],
    ['size>10', true],
    ['size<10', false],
    ['app>1', false],
    ['app=', false],
    ['example.com/role', false],
  ])('%s', (text, expected) => expect(parseLabelSelector(text).matches(labels)).toBe(expected));

  it.each([
    'a b',
    'app in web',
    'app in ()x',
    '=x',
    'a=b=c',
    'app in (a',
    '-x=1',
    'a=!!',
    'x>y',
    `k=${'v'.repeat(64)}`,
    ',',
  ])('refuses %j', (text) => {
    expect(() => parseLabelSelector(text)).toThrow(ApiError);
  });

  it('takes the object form: nothing for nil, everything for empty', () => {
    expect(selectorFrom(undefined).matches(labels)).toBe(false);
    expect(selectorFrom({}).matches(undefined)).toBe(true);
    expect(
      selectorFrom({
        matchLabels: { app: 'web' },
        matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['back'] }],
      }).matches(labels),
    ).toBe(true);
    expect(() => selectorFrom({ matchExpressions: [{ key: 'a', operator: 'constructor' }] })).toThrow(
      'not a valid label selector operator',
    );
    expect(() => selectorFrom({ matchExpressions: [{ key: 'a', operator: 'In' }] })).toThrow("can't be empty");
  });

  it('does not read labels off the prototype', () =>
    expect(parseLabelSelector('constructor').matches(labels)).toBe(false));

  it('never fails with anything but an ApiError', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[a-c!=()<>, in]*$/)), (text) => {
        for (const parse of [parseLabelSelector, parseFieldSelector]) {
          try {
            parse(text);
          } catch (error) {
            expect(error).toBeInstanceOf(ApiError);
          }
        }
      }),
    );
  });
});

describe('selectors as text', () => {
  it.each(['a=b', 'a in (b,c)', 'a notin (b,c)', 'a,!b', 'a>1,b<2', '', 'a='])('writes what it reads: %j', (text) =>
    expect(labelSelectorText(parseLabelSelector(text))).toBe(text),
  );
  it('writes what objects say', () => {
    const object = { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'Exists' }] };
    expect(labelSelectorText(selectorFrom(object))).toBe('a=b,c');
  });
});

describe('field selectors', () => {
  it('parses paths, both equalities and escapes', () => {
    expect(parseFieldSelector('metadata.name=a\\,b,status.phase!=Running,spec.nodeName==')).toEqual([
      { path: 'metadata.name', equals: true, value: 'a,b' },
      { path: 'status.phase', equals: false, value: 'Running' },
      { path: 'spec.nodeName', equals: true, value: '' },
    ]);
  });
  it('trims around the sign', () =>
    expect(parseFieldSelector(' metadata.name  =  a ')).toEqual([{ path: 'metadata.name', equals: true, value: 'a' }]));
  it('reads each character once, whoever sends it', () => {
    // Anyone may send this, before anyone asks who they are. Quadratic, these repetitions would take minutes.
    for (let repetition = 0; repetition < 500; repetition++)
      expect(() => parseFieldSelector(`a${' '.repeat(16_000)}b`)).toThrow(ApiError);
  });
  it('refuses more requirements than anyone needs', () => {
    const text = Array.from({ length: 300 }, (_, index) => `a${index}`).join();
    expect(() => parseLabelSelector(text)).toThrow('at most 256 requirements');
    expect(() => parseFieldSelector(text)).toThrow('at most 256 requirements');
  });
  it.each([
    ['metadata.name', "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ['a=b,c', "invalid selector: 'a=b,c'; can't understand 'c'"],
    ['!', "invalid selector: '!'; can't understand '!'"],
    ['a!b', "invalid selector: 'a!b'; can't understand 'a!b'"],
    ['a>b', "invalid selector: 'a>b'; can't understand 'a>b'"],
    ['a=b=c', 'invalid field selector: unescaped character in value: ='],
    ['a=b\\', 'invalid field selector: invalid escape sequence: \\'],
    ['a=b\\x', 'invalid field selector: invalid escape sequence: \\x'],
  ])('refuses %j', (text, message) =>
    expect(() => parseFieldSelector(text)).toThrow(new ApiError(400, 'BadRequest', message)),
  );
  it('leaves it to the kind to refuse a path that is none', () =>
    expect(parseFieldSelector('=x')).toEqual([{ path: '', equals: true, value: 'x' }]));
});
