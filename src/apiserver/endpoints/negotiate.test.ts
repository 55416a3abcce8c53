import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { negotiate, toYaml, warningHeaders } from './negotiate.ts';

describe('content negotiation', () => {
  const kubectl =
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';
  it.each([
    [undefined, 'json Object'],
    ['*/*', 'json Object'],
    ['application/vnd.kubernetes.protobuf, */*', 'json Object'],
    ['application/vnd.kubernetes.protobuf,application/json', 'json Object'],
    [kubectl, 'json Table'],
    ['application/json;as=Table;v=v9;g=meta.k8s.io,application/yaml', 'yaml Object'],
    ['application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io', 'json PartialObjectMetadata'],
  ])('%s', (accept, expected) => {
    const { format, as } = negotiate(accept);
    expect(`${format} ${as}`).toBe(expected);
  });
  it('refuses what it cannot produce', () =>
    expect(() => negotiate('application/xml')).toThrow('only the following media types are accepted'));
  it('writes YAML that older parsers read as the same', () => {
    const value = { b: { labels: { a: 'yes', b: 'off', c: '1_000', d: '0o7', e: 'text' } }, a: [{ name: 'x' }] };
    const text = toYaml(value);
    expect(text).toContain('a: "yes"');
    expect(text).toMatch(/^a:\n- name: x\nb:\n/);
    for (const version of ['1.1', '1.2'] as const) expect(parse(text, { version })).toEqual(value);
  });
  it('keeps warnings inside one header line', () => {
    expect(warningHeaders(['a "b"\nc', 'a "b"\nc'])).toEqual({ warning: ['299 - "a \\"b\\" c"'] });
  });
  it('cuts warnings that are too many or too long, but never a character', () => {
    const { warning = [] } = warningHeaders([
      'x'.repeat(5000),
      `${'y'.repeat(255)}\u{1f600}`,
      ...Array.from({ length: 99 }, (_, n) => `${n}`.padEnd(300)),
    ]);
    expect(warning.slice(0, 2)).toEqual([`299 - "${'x'.repeat(256)}..."`, `299 - "${'y'.repeat(255)}..."`]);
    expect(warning.join('').length).toBeLessThan(5000);
  });
});
