import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.ts';
import { InProcessApi } from '../../../test/support/in-process.ts';
import { ACCELERATOR_LABEL } from '../../api/kubevirt/node-labels.ts';
import type { KubeObject } from '../../api/meta.ts';
import { realClock } from '../../env/real.ts';
import { Client } from '../../kube/client.ts';
import { EventRecorder } from '../../kube/event-recorder.ts';
import { InProcessTransport, type LocalIdentity } from '../../kube/in-process-transport.ts';
import { Manager } from '../../kube/manager.ts';
import type { Resource } from '../../kube/resource.ts';
import { SharedInformers } from '../../kube/shared-informers.ts';
import { makeCertificateRequest, type RequestNames } from '../../machinery/x509/certificate-request.fixture.ts';
import { install, installation } from '../installation/install.ts';
import { CONTROLLER_IDENTITY } from '../installation/rights.ts';
import { NodeCertificates } from './node-certificates.ts';

interface Request extends KubeObject {
  status?: { certificate?: string; conditions?: { type: string; reason: string }[] };
}
const requests: Resource<Request> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
};
const nodes: Resource = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

const stopping = new AbortController();
const { signal } = stopping;
let api: InProcessApi;
let running: Promise<void>;

const clientOf = (identity: LocalIdentity): Client =>
  new Client(new InProcessTransport((request) => api.core.handle(request), identity), 'test');
const admin = (): Client => clientOf({ user: 'admin', groups: ['system:masters'] });

beforeAll(async () => {
  api = await InProcessApi.start();
  await install(admin(), realClock, installation({ ours: [], initial: [] }), signal);
  const client = clientOf(CONTROLLER_IDENTITY);
  const { env } = api;
  const informers = new SharedInformers({ client, env });
  const recorder = new EventRecorder({ client, env, component: 'test' });
  const controller = new NodeCertificates({ env, client, informers, recorder });
  running = new Manager({ env, name: 'test' }).add(...informers.all(), controller).run(signal);
});
afterAll(async () => {
  stopping.abort();
  await running;
  await api.stop();
});

const ofAgent = { labels: { [ACCELERATOR_LABEL]: 'tcg' } };

/** Makes the Node of an agent. */
async function join(name: string): Promise<void> {
  await admin().create(nodes, { metadata: { name, ...ofAgent } } as never, signal);
}

async function ask(node: string, request: string, names: Partial<RequestNames>): Promise<void> {
  const identity = { user: `system:node:${node}`, groups: ['system:nodes'] };
  const { requestPem } = await makeCertificateRequest({
    commonName: identity.user,
    organizations: ['system:nodes'],
    ...names,
  });
  const spec = {
    request: Buffer.from(requestPem).toString('base64'),
    signerName: 'kubernetes.io/kubelet-serving',
    usages: ['digital signature', 'server auth'],
  };
  await clientOf(identity).create(requests, { metadata: { name: request }, spec } as never, signal);
}

async function report(node: string, ...addresses: readonly string[]): Promise<void> {
  const status = { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) };
  await admin().patch(nodes, '', node, { type: 'merge', body: { status } }, signal, { subresource: 'status' });
}

const conditionsOf = async (request: string): Promise<object[]> =>
  (await admin().get(requests, '', request, signal)).status?.conditions ?? [];

const certified = (request: string): Promise<void> =>
  eventually(async () => {
    const { status } = await admin().get(requests, '', request, signal);
    expect(status?.certificate).toBeTruthy();
  });

describe('with the rights of the controllers', () => {
  it('approves what a node asks for itself, once its Node says so', async () => {
    await join('n1');
    await ask('n1', 'n1-named', { dnsNames: ['n1'] });
    await certified('n1-named');
    await ask('n1', 'n1-serving', { dnsNames: ['n1'], ipAddresses: ['10.0.0.1'] });
    await report('n1', '10.0.0.1');
    await certified('n1-serving');
  });

  it('leaves to people what the API server is known by', async () => {
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kubernetes', namespace: 'default' },
      spec: { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1'], ports: [{ port: 443 }] },
    };
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'kubernetes', namespace: 'default' },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.7'] }],
    };
    const endpointSlices = { ...nodes, group: 'discovery.k8s.io', plural: 'endpointslices', kind: 'EndpointSlice' };
    await admin().create({ ...nodes, plural: 'services', kind: 'Service', namespaced: true }, service, signal);
    await admin().create({ ...endpointSlices, namespaced: true }, slice, signal);
    await join('n3');
    await report('n3', '10.96.0.1', '10.0.0.7', '10.0.0.3');
    await ask('n3', 'n3-service', { dnsNames: ['n3'], ipAddresses: ['10.96.0.1'] });
    await ask('n3', 'n3-endpoint', { dnsNames: ['n3'], ipAddresses: ['10.0.0.7'] });
    await ask('n3', 'n3-own', { dnsNames: ['n3'], ipAddresses: ['10.0.0.3'] });
    await certified('n3-own');
    for (const request of ['n3-service', 'n3-endpoint']) expect(await conditionsOf(request)).toEqual([]);
  });

  it('leaves to people what is not the node’s own', async () => {
    await join('n2');
    await report('n2', '10.0.0.2', 'n1');
    await ask('n2', 'n2-thief', { dnsNames: ['n1'] });
    await ask('n2', 'n2-own', { dnsNames: ['n2'] });
    await certified('n2-own');
    expect(await conditionsOf('n2-thief')).toEqual([]);
  });

  it('leaves to others what a kubelet asks for, until its Node says that it has an agent', async () => {
    await admin().create(nodes, { metadata: { name: 'worker' } } as never, signal);
    await report('worker', '10.0.0.4');
    await ask('worker', 'worker-serving', { dnsNames: ['worker'], ipAddresses: ['10.0.0.4'] });
    await join('worker-guests');
    await report('worker-guests', '10.0.0.4');
    await ask('worker-guests', 'guests-serving', { dnsNames: ['worker-guests'], ipAddresses: ['10.0.0.4'] });
    await certified('guests-serving');
    expect(await conditionsOf('worker-serving')).toEqual([]);
    await admin().patch(nodes, '', 'worker', { type: 'merge', body: { metadata: ofAgent } }, signal);
    await certified('worker-serving');
  });
});
