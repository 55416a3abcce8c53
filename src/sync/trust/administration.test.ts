import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { createAuthority, DAY_MS } from '../../machinery/x509/authority.ts';
import { importTrust, listTrust, ownTrust, revokeTrust, TrustError } from './administration.ts';
import { bundleText, parseBundle } from './bundle.ts';
import { formatDocument, parseDocument, type TrustDocument } from './document.ts';
import { changeTrust, keepAuthorities } from './store.ts';
import { TrustingCluster } from './trust.fixture.ts';

const env = testEnv();
const nowMs = env.clock.now();
const { signal } = new AbortController();
let cluster: TrustingCluster;
let east: TrustDocument;

beforeAll(async () => {
  cluster = await TrustingCluster.start('cluster-w');
  const authority = await createAuthority(env, 'east', DAY_MS);
  east = { clusterId: 'cluster-e', name: 'east', authorities: parseBundle(authority.certificatePem) };
});
afterAll(() => cluster.stop());
afterEach(() => changeTrust(cluster.admin, () => ({}), signal));

const add = (document: TrustDocument, name?: string) => importTrust(cluster.admin, { document, name, nowMs }, signal);
const list = () => listTrust(cluster.admin, nowMs, signal);

describe('a document', () => {
  it('is read as it was written', () => {
    const text = formatDocument(east);
    expect(text).toMatch(
      /^apiVersion: godwit\.io\/v1\nkind: ClusterTrust\nclusterId: cluster-e\nname: east\nbundle: \|\n {2}-----BEGIN/,
    );
    const read = parseDocument(Buffer.from(text));
    expect({ ...read, authorities: bundleText(read.authorities) }).toEqual({
      ...east,
      authorities: bundleText(east.authorities),
    });
  });

  it.each([
    ['', 'is no ClusterTrust'],
    ['[]', 'is no ClusterTrust'],
    ['{"apiVersion": "v1", "kind": "Secret"}', 'is no ClusterTrust'],
    ['a: [', 'YAML'],
    ['x'.repeat(70_000), 'larger than'],
  ])('is not %j', (text, message) => expect(() => parseDocument(Buffer.from(text))).toThrow(message));

  it.each([
    ['clusterId', '../x', 'its clusterId is none'],
    ['clusterId', 7, 'its clusterId is none'],
    ['name', 'Big Name', 'its name is none'],
    ['bundle', 'x', 'one or more certificates'],
    ['bundle', undefined, 'one or more certificates'],
  ])('is not one whose %s is %j', (field, value, message) => {
    const document = { apiVersion: 'godwit.io/v1', kind: 'ClusterTrust', clusterId: 'a', name: 'a', bundle: 'a' };
    const text = JSON.stringify({ ...document, [field]: value });
    expect(() => parseDocument(Buffer.from(text))).toThrow(message);
  });
});

describe('a cluster', () => {
  it('says who it is once it knows', async () => {
    await expect(ownTrust(cluster.admin, undefined, signal)).rejects.toThrow('has not made');
    await keepAuthorities({ client: cluster.client, env, clusterId: cluster.id }, signal);
    const own = await ownTrust(cluster.admin, undefined, signal);
    expect(own).toMatchObject({ clusterId: 'cluster-w', name: expect.stringMatching(/^cluster-/) });
    expect(await ownTrust(cluster.admin, 'west', signal)).toMatchObject({ name: 'west' });
    await expect(ownTrust(cluster.admin, 'No Name', signal)).rejects.toThrow(TrustError);
    await expect(add(own)).rejects.toThrow('this very cluster');
  });

  it('trusts what it imports, by the name that it is given', async () => {
    expect(await add(east)).toMatchObject({ outcome: 'new', peer: { name: 'east' } });
    expect(await add({ ...east, name: 'orient' })).toMatchObject({ outcome: 'renewed', peer: { name: 'east' } });
    expect(await add(east, 'osten')).toMatchObject({ outcome: 'renewed', peer: { name: 'osten' } });
    expect(await list()).toMatchObject([
      {
        name: 'osten',
        clusterId: 'cluster-e',
        state: 'Trusted',
        fingerprints: [expect.stringMatching(/^[0-9A-F:]{95}$/)],
      },
    ]);
  });

  it('does not call two by one name, nor trust what has ended', async () => {
    await add(east);
    await expect(add({ ...east, clusterId: 'cluster-z' })).rejects.toThrow(
      'another cluster (cluster-e) is called east',
    );
    const late = importTrust(cluster.admin, { document: east, nowMs: nowMs + 2 * DAY_MS }, signal);
    await expect(late).rejects.toThrow('have expired');
    expect(await listTrust(cluster.admin, nowMs + 2 * DAY_MS, signal)).toMatchObject([{ state: 'Expired' }]);
  });

  it('revokes by name or id, and takes that back with an import', async () => {
    await expect(revokeTrust(cluster.admin, 'east', nowMs, signal)).rejects.toThrow('is called east');
    await add(east);
    expect(await revokeTrust(cluster.admin, 'cluster-e', nowMs, signal)).toMatchObject({ wasRevoked: false });
    expect(await revokeTrust(cluster.admin, 'east', nowMs, signal)).toMatchObject({ wasRevoked: true });
    expect(await list()).toMatchObject([{ state: 'Revoking' }]);
    expect(await add(east)).toMatchObject({ outcome: 'restored' });
    expect(await list()).toMatchObject([{ state: 'Trusted' }]);
  });

  it('shows what it cannot read', async () => {
    await changeTrust(cluster.admin, () => ({ 'x.crt': 'nonsense', 'x.name': 'x' }), signal);
    expect(await list()).toMatchObject([{ clusterId: 'x', state: 'Broken', message: expect.stringContaining('PEM') }]);
  });
});
