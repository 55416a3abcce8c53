import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../meta.ts';
import { decodedLength, decodeText, encodeText } from './base64.ts';
import { configMapDefinition } from './config-map.ts';
import { cells, changed, created, lines, object } from './kinds.fixture.ts';
import { secretDefinition } from './secret.ts';
import { serviceAccountDefinition } from './service-account.ts';

describe('ConfigMap', () => {
  const check = (fields: JsonObject): string[] =>
    lines(configMapDefinition.strategy?.validate?.(object('ConfigMap', fields)) ?? []);

  it('accepts texts and bytes', () => {
    expect(check({ data: { 'a.b_c-d': 'x' }, binaryData: { e: 'AAAA' } })).toEqual([]);
    expect(check({})).toEqual([]);
  });

  it('refuses bad and double keys', () => {
    expect(check({ data: { 'a/b': '' } })).toEqual([
      `data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`,
    ]);
    expect(check({ data: { '..': '' } })).toEqual([`data[..]: Invalid value: "..": must not be '..'`]);
    expect(check({ data: { a: '' }, binaryData: { a: '' } })).toEqual([
      'data[a]: Invalid value: "a": duplicate of key present in binaryData',
    ]);
  });

  it('holds at most a mebibyte in all', () => {
    const half = 'ä'.repeat(2 ** 18);
    expect(check({ data: { a: half, b: half } })).toEqual([]);
    expect(check({ data: { a: half, b: half, c: 'x' } })).toEqual(['Too long: may not be more than 1048576 bytes']);
    expect(check({ binaryData: { a: encodeText('x'.repeat(2 ** 20 + 1)) } })).toHaveLength(1);
  });

  it('can be frozen', () => {
    const old = object('ConfigMap', { immutable: true, data: { a: 'b' } });
    const update = (changes: { readonly [path: string]: unknown }): string[] =>
      lines(configMapDefinition.strategy?.validateUpdate?.(changed(old, changes), old) ?? []);
    expect(update({ 'metadata.labels': { a: 'b' } })).toEqual([]);
    expect(update({ data: {}, immutable: false, binaryData: { x: 'AA==' } })).toEqual([
      'immutable: Forbidden: field is immutable when `immutable` is set',
      'data: Forbidden: field is immutable when `immutable` is set',
      'binaryData: Forbidden: field is immutable when `immutable` is set',
    ]);
  });

  it('counts its keys', () => {
    const configMap = object('ConfigMap', { data: { a: '' }, binaryData: { b: '', c: '' } });
    expect(cells(configMapDefinition, configMap, 0)).toEqual(['a', 3, '<unknown>']);
  });
});

describe('Secret', () => {
  const check = (fields: JsonObject, annotations: Record<string, string> = {}): string[] =>
    lines(
      secretDefinition.strategy?.validate?.(created(secretDefinition, object('Secret', fields, { annotations }))) ?? [],
    );

  it('moves texts into data and has a type', () => {
    const secret = created(
      secretDefinition,
      object('Secret', { stringData: { a: 'ä', b: '' }, data: { a: 'AA==', c: 'AA==' } }),
    );
    expect(secret).toMatchObject({ type: 'Opaque', data: { a: 'w6Q=', b: '', c: 'AA==' } });
    expect(secret['stringData']).toBeUndefined();
  });

  it('treats a key named __proto__ as data', () => {
    const stringData = JSON.parse('{"__proto__": "x"}') as JsonObject;
    const secret = created(secretDefinition, object('Secret', { stringData }));
    expect(JSON.stringify(secret['data'])).toBe('{"__proto__":"eA=="}');
  });

  it.each<[JsonObject, string[]]>([
    [{ type: 'example.com/mine', data: {} }, []],
    [{ type: 'kubernetes.io/tls', stringData: { 'tls.crt': '' } }, ['data[tls.key]: Required value']],
    [{ type: 'kubernetes.io/basic-auth' }, ['data[username]: Required value', 'data[password]: Required value']],
    [{ type: 'kubernetes.io/basic-auth', stringData: { password: '' } }, []],
    [
      { type: 'kubernetes.io/ssh-auth', stringData: { 'ssh-privatekey': '' } },
      ['data[ssh-privatekey]: Required value'],
    ],
    [{ type: 'kubernetes.io/dockerconfigjson' }, ['data[.dockerconfigjson]: Required value']],
    [{ type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': '{}' } }, []],
    [
      { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': 'secret!' } },
      ['data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": must be a JSON object'],
    ],
    [
      { type: 'kubernetes.io/service-account-token' },
      ['metadata.annotations[kubernetes.io/service-account.name]: Required value'],
    ],
  ])('knows what types hold: %j', (fields, errors) => {
    expect(check(fields)).toEqual(errors);
  });

  it('never shows what it holds', () => {
    expect(check({ stringData: { 'a b': 'hunter2' } }).join()).not.toContain('hunter2');
  });

  it('keeps its type, and can be frozen', () => {
    const old = object('Secret', { type: 'Opaque', immutable: true, data: { a: 'AA==' } });
    const update = (changes: { readonly [path: string]: unknown }): string[] =>
      lines(secretDefinition.strategy?.validateUpdate?.(changed(old, changes), old) ?? []);
    expect(update({})).toEqual([]);
    expect(update({ type: 'x/y', 'data.a': 'AAA=' })).toEqual([
      'type: Invalid value: "x/y": field is immutable',
      'data: Forbidden: field is immutable when `immutable` is set',
    ]);
  });

  it('shows type and count', () => {
    expect(cells(secretDefinition, object('Secret', { type: 'Opaque', data: { a: '' } }), 0)).toEqual([
      'a',
      'Opaque',
      1,
      '<unknown>',
    ]);
  });
});

describe('base64', () => {
  it.each(['', 'a', 'ab', 'abc', 'ä€😀'])('carries %j', (text) => {
    expect(decodeText(encodeText(text))).toBe(text);
    expect(decodedLength(encodeText(text))).toBe(Buffer.byteLength(text));
  });
  it('knows what it is not', () => {
    expect(decodeText('!')).toBeUndefined();
    expect(decodeText('/w==')).toBeUndefined();
  });
});

describe('ServiceAccount', () => {
  it('counts secrets and has a token door', () => {
    expect(cells(serviceAccountDefinition, object('ServiceAccount', { secrets: [{ name: 'x' }] }), 0)).toEqual([
      'a',
      1,
      '<unknown>',
    ]);
    expect(serviceAccountDefinition.subresources).toMatchObject([
      { name: 'token', kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] },
    ]);
  });
});
