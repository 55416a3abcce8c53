import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ACCELERATOR_LABEL } from '../../src/api/kubevirt/node-labels.ts';
import { makeCertificateRequest, type RequestNames } from '../../src/machinery/x509/certificate-request.fixture.ts';
import type { Answer } from '../support/api.ts';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { HttpClient } from '../support/http-client.ts';

/** What a node can do with its certificate and what it cannot, shown by trying, and how the API server comes to its logs. */

const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const CLIENT = {
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  usages: ['digital signature', 'client auth'],
};
const SERVING = { signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] };
const MERGE = { 'content-type': 'application/merge-patch+json' };

let cluster: Cluster;
let n1: HttpClient;
let n2: HttpClient;
let root: string;
const clients: HttpClient[] = [];
const servers: Server[] = [];

function client(credentials: { token?: string; certificate?: string; key?: string }): HttpClient {
  const { url, ca } = cluster.godwit.access();
  const made = new HttpClient({ url, ca, ...credentials });
  clients.push(made);
  return made;
}

interface Certified {
  readonly certificate: string;
  readonly key: string;
}

/** Asks for a certificate and waits for it. */
async function certify(asker: HttpClient, name: string, names: RequestNames, spec: object): Promise<Certified> {
  const { requestPem, keyPem } = await makeCertificateRequest(names);
  const request = Buffer.from(requestPem).toString('base64');
  (await asker.request('POST', CSRS, { body: { metadata: { name }, spec: { request, ...spec } } })).expect(201);
  return eventually(async () => {
    const { status } = (await asker.request('GET', `${CSRS}/${name}`)).expect(200).json;
    expect(status.certificate).toBeTruthy();
    return { certificate: Buffer.from(status.certificate as string, 'base64').toString(), key: keyPem };
  });
}

const namesOf = (node: string): RequestNames => ({
  commonName: `system:node:${node}`,
  organizations: ['system:nodes'],
});

/** A machine with nothing but the token becomes a node: no role has to be given to anybody. */
async function join(name: string): Promise<HttpClient> {
  const machine = client({ token: 'abcdef.0123456789abcdef' });
  const node = client(await certify(machine, `join-${name}`, namesOf(name), CLIENT));
  // By this label it has an agent, and its serving certificate is the controllers' to approve.
  const body = { metadata: { name, labels: { [ACCELERATOR_LABEL]: 'tcg' } } };
  (await node.request('POST', '/api/v1/nodes', { body })).expect(201);
  return node;
}

/** A pod on a node that refers to a secret, a config map and a claim of its own name. */
async function place(name: string, nodeName: string): Promise<void> {
  await cluster.create(`${root}/secrets`, { metadata: { name }, stringData: { key: name } });
  await cluster.create(`${root}/configmaps`, { metadata: { name }, data: { key: name } });
  await cluster.create(`${root}/pods`, {
    metadata: { name },
    spec: {
      nodeName,
      containers: [{ name: 'compute', image: 'x' }],
      volumes: [
        { name: 'a', secret: { secretName: name } },
        { name: 'b', configMap: { name } },
      ],
    },
  });
}

beforeAll(async () => {
  cluster = await Cluster.start();
  await cluster.create('/api/v1/namespaces/kube-system/secrets', {
    metadata: { name: 'bootstrap-token-abcdef' },
    type: 'bootstrap.kubernetes.io/token',
    stringData: {
      'token-id': 'abcdef',
      'token-secret': '0123456789abcdef',
      'usage-bootstrap-authentication': 'true',
    },
  });
  const { namespace } = await cluster.namespace();
  root = `/api/v1/namespaces/${namespace}`;
  [n1, n2] = await Promise.all([join('n1'), join('n2')]);
  await place('one', 'n1');
  await place('two', 'n2');
});
afterAll(async () => {
  for (const each of clients) each.close();
  for (const each of servers) each.close();
  await cluster.close();
});

const get = (who: HttpClient, path: string): Promise<Answer> => who.request('GET', path);
const patch = (who: HttpClient, path: string, body: object): Promise<Answer> =>
  who.request('PATCH', path, { body, headers: MERGE });

describe('a node', () => {
  it('reads what its own pods refer to, and nothing else of that kind', async () => {
    for (const kind of ['secrets', 'configmaps', 'pods']) {
      (await get(n1, `${root}/${kind}/one`)).expect(200);
      const refusal = (await get(n1, `${root}/${kind}/two`)).expect(403).json;
      expect(refusal.message).toContain("no relationship found between node 'n1' and this object");
      (await get(n1, `${root}/${kind}`)).expect(403);
      (await get(n1, `/api/v1/${kind}?watch=true`)).expect(403);
    }
    (await get(n1, `${root}/secrets?fieldSelector=metadata.name%3Done`)).expect(200);
    (await patch(n1, `${root}/secrets/one`, { data: {} })).expect(403);
  });

  it('lists and watches its own pods', async () => {
    const { items } = (await get(n1, '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1')).expect(200).json;
    expect(items.map((pod: { metadata: { name: string } }) => pod.metadata.name)).toEqual(['one']);
    (await get(n1, '/api/v1/pods?fieldSelector=spec.nodeName%3Dn2')).expect(403);
    const stream = await n1.watch('/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn1');
    expect(stream.status).toBe(200);
    stream.close();
  });

  it('reports on its own pods and removes them', async () => {
    const status = { status: { phase: 'Running' } };
    (await patch(n1, `${root}/pods/one/status`, status)).expect(200);
    const refusal = (await patch(n1, `${root}/pods/two/status`, status)).expect(403).json;
    expect(refusal.message).toContain('can only update pod status for pods with spec.nodeName set to itself');
    (await n1.request('DELETE', `${root}/pods/two`)).expect(403);
    (await patch(n1, `${root}/pods/one`, { metadata: { labels: { a: 'b' } } })).expect(403);
    await place('three', 'n1');
    (await get(n1, `${root}/secrets/three`)).expect(200);
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 };
    (await n1.request('DELETE', `${root}/pods/three`, { body })).expect(200);
    (await get(n1, `${root}/secrets/three`)).expect(403);
  });

  it('speaks for itself alone', async () => {
    (await patch(n1, '/api/v1/nodes/n1/status', { status: { conditions: [] } })).expect(200);
    (await patch(n1, '/api/v1/nodes/n2/status', { status: { conditions: [] } })).expect(403);
    (await get(n1, '/api/v1/nodes')).expect(403);
    (await n1.request('POST', '/api/v1/nodes', { body: { metadata: { name: 'n3' } } })).expect(403);
    (await n1.request('DELETE', '/api/v1/nodes/n1')).expect(403);
    const lease = (name: string) => ({ body: { metadata: { name }, spec: { holderIdentity: name } } });
    (await n1.request('POST', LEASES, lease('n1'))).expect(201);
    (await n1.request('POST', LEASES, lease('n2'))).expect(403);
    (await get(n1, `${LEASES}/n2`)).expect(403);
  });

  it('says of itself what nobody relies on to keep it away', async () => {
    const labels = { 'kubevirt.io/schedulable': 'true', 'cpu-model.node.kubevirt.io/x': 'true', 'godwit.dev/a': 'b' };
    const annotations = { 'godwit.dev/local-storage-path': '/x' };
    (await patch(n1, '/api/v1/nodes/n1', { metadata: { labels, annotations } })).expect(200);
    const secure = { metadata: { labels: { 'node-restriction.kubernetes.io/secure': 'true' } } };
    (await patch(n1, '/api/v1/nodes/n1', secure)).expect(403);
    const taints = [{ key: 'a', effect: 'NoSchedule' }];
    (await patch(n1, '/api/v1/nodes/n1', { spec: { taints } })).expect(403);
  });

  it('asks for certificates for itself alone', async () => {
    const { requestPem } = await makeCertificateRequest(namesOf('n2'));
    const spec = { request: Buffer.from(requestPem).toString('base64'), ...CLIENT };
    const body = { metadata: { name: 'n1-as-n2' }, spec };
    const refusal = (await n1.request('POST', CSRS, { body })).expect(403).json;
    expect(refusal.message).toContain('CN=system:node:n1');
  });

  it('can ask what it may do, but for a list of all', async () => {
    const may = async (resourceAttributes: object): Promise<boolean> => {
      const body = { spec: { resourceAttributes } };
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
      return (await n1.request('POST', path, { body })).expect(201).json.status.allowed;
    };
    const pods = { verb: 'list', resource: 'pods' };
    const requirements = [{ key: 'spec.nodeName', operator: 'In', values: ['n1'] }];
    expect(await may(pods)).toBe(false);
    expect(await may({ ...pods, fieldSelector: { requirements } })).toBe(true);
    expect(await may({ ...pods, fieldSelector: { rawSelector: 'spec.nodeName=n1' } })).toBe(true);
    expect(await may({ ...pods, fieldSelector: { rawSelector: 'spec.nodeName=n2' } })).toBe(false);
    expect(await may({ ...pods, fieldSelector: { rawSelector: 'what?' } })).toBe(false);
    const body = { spec: { namespace: 'default' } };
    const rules = await n1.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', { body });
    expect(rules.expect(201).json.status).toMatchObject({
      incomplete: true,
      evaluationError: expect.stringContaining('node authorizer'),
    });
  });

  it('makes tokens for the accounts of its pods, bound to them', async () => {
    const { uid } = (await cluster.get(`${root}/pods/one`)).metadata;
    const token = `${root}/serviceaccounts/default/token`;
    const bound = (name: string, of: string) => ({
      body: { spec: { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid: of } } },
    });
    (await n1.request('POST', token, bound('one', uid))).expect(201);
    (await n2.request('POST', token, bound('one', uid))).expect(403);
    (await n1.request('POST', token, { body: { spec: {} } })).expect(403);
  });

  it('sees guests, whose specs no role could confine, but not who may do what', async () => {
    (await get(n1, '/apis/kubevirt.io/v1/virtualmachineinstances')).expect(200);
    (await get(n1, '/apis/kubevirt.io/v1/kubevirts')).expect(200);
    (await get(n1, '/api/v1/persistentvolumes')).expect(200);
    (await get(n1, '/apis/kubevirt.io/v1/virtualmachines')).expect(403);
    (await get(n1, `/apis/kubevirt.io/v1${root.slice('/api/v1'.length)}/virtualmachines/none`)).expect(404);
    (
      await n1.request('POST', `/apis/kubevirt.io/v1${root.slice('/api/v1'.length)}/virtualmachineinstances`, {
        body: { metadata: { name: 'x' }, spec: { domain: { devices: {} } } },
      })
    ).expect(403);
    (await get(n1, '/apis/rbac.authorization.k8s.io/v1/clusterroles')).expect(403);
  });
});

describe('a guest', () => {
  const guests = (): string => `/apis/kubevirt.io/v1${root.slice('/api/v1'.length)}/virtualmachineinstances`;
  const write = (who: HttpClient, status: object): Promise<Answer> => patch(who, `${guests()}/vm/status`, { status });

  /** What the scheduler and the agent of n1 do, up to the moment in which the guest is handed over. */
  async function handOver(): Promise<{ uid: string; nodeUID: string }> {
    const spec = { domain: { devices: {}, resources: { requests: { memory: '64Mi' } } } };
    await eventually(() => cluster.create(guests(), { metadata: { name: 'vm' }, spec }));
    const { name, uid } = await eventually(async () => {
      const { items } = await cluster.get(`${root}/pods?labelSelector=vm.kubevirt.io%2Fname%3Dvm`);
      expect(items).toHaveLength(1);
      return items[0].metadata;
    });
    const binding = { metadata: { name }, target: { kind: 'Node', name: 'n1' } };
    await cluster.create(`${root}/pods/${name}/binding`, binding);
    const containerStatuses = [
      { name: 'compute', ready: true, restartCount: 0, image: 'x', imageID: 'x', state: { running: {} } },
    ];
    const conditions = [{ type: 'Ready', status: 'True' }];
    const running = { status: { phase: 'Running', containerStatuses, conditions } };
    (await patch(n1, `${root}/pods/${name}/status`, running)).expect(200);
    await eventually(async () => {
      expect((await cluster.get(`${guests()}/vm`)).status).toMatchObject({ phase: 'Scheduled', nodeName: 'n1' });
    });
    return { uid, nodeUID: (await cluster.get('/api/v1/nodes/n1')).metadata.uid };
  }

  it('is started, reported on and given back by the node that it was given to, and by no other', async () => {
    const { uid: podUID, nodeUID } = await handOver();
    const right = (epoch: number, node: string) => ({ rightToRun: { epoch, holder: { node, nodeUID, podUID } } });
    const refused = async (who: HttpClient, status: object): Promise<string> =>
      (await write(who, status)).expect(403).json.message;
    expect(await refused(n2, right(1, 'n2'))).toContain('node "n2" has nothing to do with this guest');
    expect(await refused(n2, { phase: 'Failed' })).toContain('has nothing to do with this guest');
    expect(await refused(n1, { phase: 'Running' })).toContain('may not say that the guest is "Running"');
    (await write(n1, { ...right(1, 'n1'), phase: 'Running' })).expect(200);
    expect(await refused(n2, { rightToRun: { epoch: 2, holder: null } })).toContain('has nothing to do');
    expect(await refused(n1, { nodeName: 'n2' })).toContain('may say where a guest is only of itself');
    (await patch(n1, `${guests()}/vm`, { metadata: { labels: { a: 'b' } } })).expect(403);
    (await n1.request('DELETE', `${guests()}/vm`)).expect(403);
    (await write(n1, { rightToRun: { epoch: 2, holder: null }, phase: 'Succeeded' })).expect(200);
    expect(await refused(n1, { phase: 'Running' })).toContain('may not bring back a guest that has ended');
  });
});

/** A node's own server, as it would be with this certificate: says who asked, and for what. */
async function serve(node: HttpClient, name: string, identity: Certified): Promise<void> {
  const { ca } = cluster.godwit.access();
  const server = createServer(
    { cert: identity.certificate, key: identity.key, ca, requestCert: true, rejectUnauthorized: true },
    (request, response) => {
      const { CN } = (request.socket as TLSSocket).getPeerCertificate().subject;
      if (request.url?.includes('previous=true')) response.writeHead(400).end('there was none before');
      else response.end(`${String(CN)} ${request.method} ${request.url}\n`);
    },
  );
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await announce(node, name, (server.address() as AddressInfo).port);
}

async function announce(node: HttpClient, name: string, port: number): Promise<void> {
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }];
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: port } } };
  (await patch(node, `/api/v1/nodes/${name}/status`, { status })).expect(200);
}

describe('the logs of a pod', () => {
  it('come from its node, with a certificate that was approved for it', async () => {
    await announce(n1, 'n1', 1);
    // Its address here is the API server's too, and nobody gets a certificate for that.
    const names = { ...namesOf('n1'), dnsNames: ['n1'] };
    await serve(n1, 'n1', await certify(n1, 'n1-serving', names, SERVING));
    const { text, headers } = (await get(cluster.api, `${root}/pods/one/log?tailLines=5&follow=1`)).expect(200);
    const place = `/containerLogs${root.slice('/api/v1/namespaces'.length)}/one/compute`;
    expect(text).toBe(`kube-apiserver-kubelet-client GET ${place}?follow=true&tailLines=5\n`);
    expect(headers['content-type']).toBe('text/plain');
    const kubectl = cluster.kubectl.inNamespace(root.split('/').at(-1) ?? '');
    expect(await kubectl.ok('logs one')).toBe(`kube-apiserver-kubelet-client GET ${place}
`);
    expect(await kubectl.fails('logs one --previous')).toContain('there was none before');
    const proxied = (await get(cluster.api, '/api/v1/nodes/n1/proxy/healthz?verbose=1')).expect(200);
    expect(proxied.text).toBe('kube-apiserver-kubelet-client GET /healthz?verbose=1\n');
  });

  it('come from nobody else, whatever a node says of its address', async () => {
    const thief = await certify(n2, 'n2-serving', { ...namesOf('n2'), dnsNames: ['n2'] }, SERVING);
    await serve(n1, 'n1', thief);
    const { message } = (await get(cluster.api, `${root}/pods/one/log`)).expect(500).json;
    expect(message).toMatch(/Get "https:\/\/127\.0\.0\.1:\d+\/containerLogs.*cert's altnames/s);
  });

  it('are refused with what is wrong', async () => {
    await announce(n1, 'n1', 1);
    const refusal = async (path: string, status: number): Promise<string> =>
      (await get(cluster.api, path)).expect(status).json.message;
    expect(await refusal(`${root}/pods/one/log`, 500)).toMatch(
      /^Get "https:\/\/127\.0\.0\.1:1\/containerLogs\/.*": dial tcp 127\.0\.0\.1:1: connect: connection refused$/,
    );
    expect(await refusal('/api/v1/nodes/n1/proxy/healthz', 503)).toMatch(/^error trying to reach service: dial tcp/);
    expect(await refusal(`${root}/pods/none/log`, 404)).toBe('pods "none" not found');
    expect(await refusal(`${root}/pods/one/log?container=x`, 400)).toBe('container x is not valid for pod one');
    expect(await refusal(`${root}/pods/one/log?tailLines=-1`, 422)).toMatch(/tailLines/);
    (await get(n2, `${root}/pods/one/log`)).expect(403);
  });
});
