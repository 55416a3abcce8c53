import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificateRequest, type RequestNames } from '../../src/machinery/x509/certificate-request.fixture.ts';
import type { Answer } from '../support/api.ts';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { HttpClient } from '../support/http-client.ts';

/** How a machine that knows nothing but a bootstrap token becomes a node, and what it can do before and after. */

const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const TOKEN = 'abcdef.0123456789abcdef';
const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';

let cluster: Cluster;
const clients: HttpClient[] = [];

function client(credentials: { token?: string; certificate?: string; key?: string }): HttpClient {
  const { url, ca } = cluster.godwit.access();
  const made = new HttpClient({ url, ca, ...credentials });
  clients.push(made);
  return made;
}

async function saveToken(id: string, fields: Record<string, string>): Promise<void> {
  await cluster.create('/api/v1/namespaces/kube-system/secrets', {
    metadata: { name: `bootstrap-token-${id}` },
    type: 'bootstrap.kubernetes.io/token',
    stringData: { 'token-id': id, 'usage-bootstrap-authentication': 'true', ...fields },
  });
}

/** As kubeadm does: who bootstraps, and who is a node, may ask for certificates and gets them. */
async function bindGroup(name: string, role: string, group: string): Promise<void> {
  await cluster.create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
  });
}

beforeAll(async () => {
  cluster = await Cluster.start();
  await saveToken('abcdef', { 'token-secret': '0123456789abcdef' });
  await bindGroup('bootstrap', 'system:node-bootstrapper', 'system:bootstrappers');
  const certificates = 'system:certificates.k8s.io:certificatesigningrequests';
  await bindGroup('join', `${certificates}:nodeclient`, 'system:bootstrappers');
  await bindGroup('renew', `${certificates}:selfnodeclient`, 'system:nodes');
});
afterAll(async () => {
  for (const each of clients) each.close();
  await cluster.close();
});

async function ask(
  asker: HttpClient,
  name: string,
  names: RequestNames,
  spec: object = {},
): Promise<{ answer: Answer; keyPem: string }> {
  const { requestPem, keyPem } = await makeCertificateRequest(names);
  const body = {
    metadata: { name },
    spec: {
      request: Buffer.from(requestPem).toString('base64'),
      signerName: CLIENT_SIGNER,
      usages: ['digital signature', 'client auth'],
      ...spec,
    },
  };
  return { answer: await asker.request('POST', CSRS, { body }), keyPem };
}

/** The certificate, once it is there. */
const issued = (asker: HttpClient, name: string): Promise<string> =>
  eventually(async () => {
    const { status } = (await asker.request('GET', `${CSRS}/${name}`)).expect(200).json;
    expect(status.certificate).toBeTruthy();
    return Buffer.from(status.certificate as string, 'base64').toString();
  });

const N1: RequestNames = { commonName: 'system:node:n1', organizations: ['system:nodes'] };

describe('a machine with a bootstrap token', () => {
  it('gets a certificate, registers, and lives as a node from then on', async () => {
    const machine = client({ token: TOKEN });
    (await machine.request('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } })).expect(403);
    const { answer, keyPem } = await ask(machine, 'n1', N1);
    expect(answer.expect(201).json.spec).toMatchObject({
      username: 'system:bootstrap:abcdef',
      groups: expect.arrayContaining(['system:bootstrappers']),
    });
    const node = client({ certificate: await issued(machine, 'n1'), key: keyPem });
    (await node.request('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } })).expect(201);
    const ready = { status: { conditions: [{ type: 'Ready', status: 'True', reason: 'Up', message: '' }] } };
    const headers = { 'content-type': 'application/merge-patch+json' };
    (await node.request('PATCH', '/api/v1/nodes/n1/status', { body: ready, headers })).expect(200);
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    const lease = { metadata: { name: 'n1' }, spec: { holderIdentity: 'n1', leaseDurationSeconds: 40 } };
    (await node.request('POST', leases, { body: lease })).expect(201);
    (await node.request('GET', '/api/v1/secrets')).expect(403);
    // Before the certificate runs out it asks for the next, as itself.
    (await ask(node, 'n1-again', N1)).answer.expect(201);
    expect(await issued(node, 'n1-again')).toContain('BEGIN CERTIFICATE');
  });

  it.each<[string, RequestNames, object, RegExp]>([
    ['for no node', { commonName: 'root', organizations: ['system:nodes'] }, {}, /system:node:/],
    ['for a member of another group', { ...N1, organizations: ['system:masters'] }, {}, /organization/i],
    ['with names of servers', { ...N1, dnsNames: ['n1'] }, {}, /DNS/i],
    ['for the use of servers', N1, { usages: ['digital signature', 'server auth'] }, /usages?/i],
  ])('gets none %s', async (what, names, spec, complaint) => {
    const machine = client({ token: TOKEN });
    const name = what.replaceAll(' ', '-');
    const { answer } = await ask(machine, name, names, spec);
    const { status: _, ...asked } = answer.expect(201).json;
    // Nobody approves it by himself; and if somebody does by mistake, the signer still says no.
    const mistake = { type: 'Approved', status: 'True', reason: 'Test', message: 'by mistake' };
    const body = { ...asked, status: { conditions: [mistake] } };
    (await cluster.api.request('PUT', `${CSRS}/${name}/approval`, { body })).expect(200);
    await eventually(async () => {
      const { status } = await cluster.get(`${CSRS}/${name}`);
      expect(status.conditions).toContainEqual(
        expect.objectContaining({ type: 'Failed', message: expect.stringMatching(complaint) }),
      );
    });
    expect((await cluster.get(`${CSRS}/${name}`)).status.certificate).toBeUndefined();
  });

  it('of which nobody knows, or that has run out, or is for something else, is nobody', async () => {
    await saveToken('past00', { 'token-secret': '0123456789abcdef', expiration: '2020-01-01T00:00:00Z' });
    await saveToken('other0', { 'token-secret': '0123456789abcdef', 'usage-bootstrap-authentication': 'false' });
    for (const token of [
      'abcdef.0123456789abcdee',
      'nobody.0123456789abcdef',
      'past00.0123456789abcdef',
      'other0.0123456789abcdef',
    ])
      (await client({ token }).request('GET', '/api')).expect(401);
    (await client({ token: TOKEN }).request('GET', '/api')).expect(200);
  });
});
