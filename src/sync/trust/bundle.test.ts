import { X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { type Authority, createAuthority, DAY_MS, issueIdentity } from '../../machinery/x509/authority.ts';
import { bundleText, clusterIdOf, clusterUri, hasSigned, parseBundle } from './bundle.ts';

const env = testEnv();
let one: Authority;
let other: Authority;

beforeAll(async () => {
  one = await createAuthority(env, 'one', DAY_MS);
  other = await createAuthority(env, 'other', DAY_MS);
});

async function leaf(names: { uris?: string[]; dnsNames?: string[] }): Promise<X509Certificate> {
  const options = { commonName: 'x', usages: ['server'] as const, validityMs: DAY_MS, ...names };
  return new X509Certificate((await issueIdentity(one, options)).certificatePem);
}

describe('a bundle', () => {
  it('is read and written, whatever white space is around', () => {
    const text = one.certificatePem + other.certificatePem;
    expect(bundleText(parseBundle(text))).toBe(text);
    expect(bundleText(parseBundle(`\n\n${text.replaceAll('\n', '\r\n')}  `))).toBe(text);
  });

  it('is one or more authorities, and nothing else', async () => {
    const { certificatePem, keyPem } = await issueIdentity(one, { commonName: 'x', usages: ['client'], validityMs: 1 });
    for (const [text, message] of [
      ['', 'one or more certificates'],
      ['hello', 'one or more certificates'],
      [`${one.certificatePem}hello`, 'one or more certificates'],
      [one.certificatePem + one.keyPem, 'one or more certificates'],
      [keyPem, 'one or more certificates'],
      [certificatePem, 'not that of an authority'],
      [one.certificatePem.repeat(5), 'at most 4'],
      ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'not readable'],
      ['x'.repeat(20_000), 'at most 16384 characters'],
    ] as const)
      expect(() => parseBundle(text), text.slice(0, 40)).toThrow(message);
  });
});

describe('a certificate', () => {
  it('is of one cluster, or of none', async () => {
    expect(clusterIdOf(await leaf({ uris: [clusterUri('abc-1')] }))).toBe('abc-1');
    for (const names of [
      {},
      { dnsNames: ['abc-1'] },
      { uris: ['https://cluster/abc-1'] },
      { uris: [clusterUri('')] },
      { uris: [clusterUri('a/b')] },
      { uris: [clusterUri('a b')] },
      { uris: [clusterUri('a, URI:godwit://cluster/b')] },
      { uris: [clusterUri('a'), clusterUri('b')] },
      { uris: [clusterUri('a')], dnsNames: ['b'] },
    ])
      expect(clusterIdOf(await leaf(names)), JSON.stringify(names)).toBeUndefined();
  });

  it('was signed by the authority that did, while that is good', async () => {
    const certificate = await leaf({ uris: [clusterUri('a')] });
    const [ours, theirs] = parseBundle(one.certificatePem + other.certificatePem);
    if (!ours || !theirs) throw new Error('two authorities were made');
    expect(hasSigned(ours, certificate, env.clock.now())).toBe(true);
    expect(hasSigned(theirs, certificate, env.clock.now())).toBe(false);
    expect(hasSigned(ours, certificate, env.clock.now() + 2 * DAY_MS)).toBe(false);
    const namesake = new X509Certificate((await createAuthority(env, 'one', DAY_MS)).certificatePem);
    expect(hasSigned(namesake, certificate, env.clock.now())).toBe(false);
  });
});
