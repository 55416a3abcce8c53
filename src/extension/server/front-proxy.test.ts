import { describe, expect, it } from 'vitest';
import { type FrontProxyTrust, trustOf, userOf } from './front-proxy.ts';
import type { ExtensionRequest } from './message.ts';

function configMap(data: Record<string, string>): Parameters<typeof trustOf>[0] {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: {}, data };
}

const TRUST: FrontProxyTrust = trustOf(
  configMap({
    'client-ca-file': 'CLUSTER',
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-client-ca-file': 'PROXY',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  }),
);

function request(clientName: string | undefined, headers: ExtensionRequest['headers']): ExtensionRequest {
  return {
    method: 'GET',
    path: '/',
    query: new URLSearchParams(),
    headers,
    clientName,
    body: async () => new Uint8Array(),
    signal: new AbortController().signal,
  };
}

const JANE = { 'x-remote-user': ['jane'] };

describe('who asks', () => {
  it('is what the front proxy says', () => {
    const headers = {
      'x-remote-user': ['jos\u00c3\u00a9'],
      'x-remote-uid': ['u7'],
      'x-remote-group': ['a, b', 'system:authenticated'],
      'x-remote-extra-example.com%2fscopes': ['read', 'write'],
      'x-remote-extra-broken%': ['kept'],
    };
    expect(userOf(TRUST, request('front-proxy-client', headers))).toEqual({
      username: 'josé',
      uid: 'u7',
      groups: ['a, b', 'system:authenticated'],
      extra: { 'example.com/scopes': ['read', 'write'], 'broken%': ['kept'] },
    });
  });

  it.each([
    ['nobody shows a certificate', request(undefined, JANE)],
    ['the certificate is of another client', request('kubelet', JANE)],
    ['no user is named', request('front-proxy-client', {})],
    ['the name is empty', request('front-proxy-client', { 'x-remote-user': [''] })],
  ])('is not known where %s', (_why, asked) => expect(userOf(TRUST, asked)).toBeUndefined());

  it('may come through any client where none is named', () =>
    expect(userOf({ ...TRUST, allowedNames: [] }, request('whoever', JANE))?.username).toBe('jane'));
});

describe('trust', () => {
  it('has both authorities', () =>
    expect(TRUST).toMatchObject({ proxyAuthorityPem: 'PROXY', clusterAuthorityPem: 'CLUSTER' }));

  it('is not guessed', () => expect(() => trustOf(configMap({}))).toThrow('aggregation is not configured'));
});
