import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  byteLength,
  configKeyErrors,
  dns1035LabelErrors,
  dnsLabelErrors,
  dnsSubdomainErrors,
  environmentNameErrors,
  labelValueErrors,
  maskTrailingDash,
  pathSegmentErrors,
  portNameErrors,
  qualifiedNameErrors,
} from './names.ts';

const SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

describe('dnsSubdomainErrors', () => {
  it.each(['a', 'a.b', 'a-b.c', '1', 'a'.repeat(253)])('accepts %s', (name) => {
    expect(dnsSubdomainErrors(name)).toEqual([]);
  });
  it.each(['', 'A', 'a_b', '-a', 'a-', 'a..b', '.a', 'a.', 'a b', 'ä', 'a\n'])('refuses %j', (name) => {
    expect(dnsSubdomainErrors(name)).toEqual([SUBDOMAIN]);
  });
  it('limits the length', () => {
    expect(dnsSubdomainErrors('a'.repeat(254))).toEqual(['must be no more than 253 characters']);
  });
});

describe('dnsLabelErrors', () => {
  it.each([
    ['a-1', []],
    ['a.b', ['must not contain dots']],
    ['A', [LABEL]],
    ['a'.repeat(64), ['must be no more than 63 characters']],
  ])('%s', (name, errors) => {
    expect(dnsLabelErrors(name)).toEqual(errors);
  });
  it('has a stricter sister for services', () => {
    expect(dns1035LabelErrors('a-1')).toEqual([]);
    expect(dns1035LabelErrors('1a')[0]).toContain('a DNS-1035 label must consist of');
  });
});

describe('qualifiedNameErrors', () => {
  it.each(['a', 'A_b.c', 'example.com/A', '1'])('accepts %s', (name) => {
    expect(qualifiedNameErrors(name)).toEqual([]);
  });
  it.each([
    ['', ['name part must be non-empty', `name part ${QUALIFIED}`]],
    ['/a', ['prefix part must be non-empty']],
    ['a/', ['name part must be non-empty', `name part ${QUALIFIED}`]],
    ['A/b', [`prefix part ${SUBDOMAIN}`]],
    ['a b', [`name part ${QUALIFIED}`]],
    ['a'.repeat(64), ['name part must be no more than 63 characters']],
    [
      'a/b/c',
      [`a qualified name ${QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`],
    ],
  ])('%j', (name, errors) => {
    expect(qualifiedNameErrors(name)).toEqual(errors);
  });
});

describe('the other rules', () => {
  it.each([
    ['', []],
    ['a_B.1', []],
    ['-a', [VALUE]],
    ['a'.repeat(64), ['must be no more than 63 characters']],
  ])('label value %j', (value, errors) => {
    expect(labelValueErrors(value)).toEqual(errors);
  });
  it.each([
    ['system:node', []],
    ['.', ["may not be '.'"]],
    ['..', ["may not be '..'"]],
    ['a/b%', ["may not contain '/'", "may not contain '%'"]],
  ])('path segment %j', (name, errors) => {
    expect(pathSegmentErrors(name)).toEqual(errors);
  });
  it.each([
    ['a\u0000b', 'may not contain control characters'],
    ['\u00e9'.repeat(127), 'must be no more than 253 characters'],
  ])('path segment %j', (name, error) => expect(pathSegmentErrors(name)).toEqual([error]));
  it.each([
    ['key.name', 0],
    ['.hidden', 0],
    ['..data', 1],
    ['..', 1],
    ['a/b', 1],
    ['', 1],
  ])('config key %j', (key, count) => {
    expect(configKeyErrors(key)).toHaveLength(count);
  });
  it.each([
    ['PATH', 0],
    ['1-with space', 0],
    ['a=b', 1],
    ['', 1],
    ['ä', 1],
  ])('environment name %j', (name, count) => {
    expect(environmentNameErrors(name)).toHaveLength(count);
  });
  it.each([
    ['http', []],
    ['80', ['must contain at least one letter (a-z)']],
    ['a--b', ['must not contain consecutive hyphens']],
    ['-a', ['must not begin or end with a hyphen']],
    ['Http', ['must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)']],
  ])('port name %j', (name, errors) => {
    expect(portNameErrors(name)).toEqual(errors);
  });
  it('lets prefixes end in a dash', () => {
    expect(maskTrailingDash('web-')).toBe('weba');
    expect(maskTrailingDash('-')).toBe('-');
    expect(maskTrailingDash('web')).toBe('web');
  });
  it('counts UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(byteLength(text)).toBe(Buffer.byteLength(text));
      }),
    );
  });
});
