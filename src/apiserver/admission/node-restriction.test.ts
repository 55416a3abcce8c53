import { beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { makeCertificateRequest } from '../../machinery/x509/certificate-request.fixture.ts';
import { builtinOf, TestRegistry, userContext } from '../registry/registry.fixture.ts';
import type { AdmissionAttributes } from '../registry/contract.ts';
import { attributesOf, nodes, pods } from './attributes.fixture.ts';
import { NodeRestriction } from './node-restriction.ts';
import { object, pod, refused } from './plugins.fixture.ts';

const leases = builtinOf('coordination.k8s.io', 'leases');
const accounts = builtinOf('', 'serviceaccounts');
const requests = builtinOf('certificates.k8s.io', 'certificatesigningrequests');
const claims = builtinOf('', 'persistentvolumeclaims');

const context = userContext({ user: { username: 'system:node:n1', groups: ['system:nodes'] } });
let plugin: NodeRestriction;

const mine = pod({ nodeName: 'n1', serviceAccountName: 'robot' });
const others = pod({ nodeName: 'n2' });
others.metadata.name = 'others';

beforeAll(async () => {
  const registry = await TestRegistry.open(mine, others, object('Node', 'n1', {}, ''));
  plugin = new NodeRestriction(registry);
});

/** What the plug-in says to the node: `ok`, or its refusal. */
async function answer(...of: Parameters<typeof attributesOf>): Promise<string> {
  const attributes: AdmissionAttributes = { ...attributesOf(...of), context };
  if (!plugin.handles(attributes)) return 'ok';
  return (await refused(plugin, attributes))?.message ?? 'ok';
}

const update = (old: KubeObject, change: (object: KubeObject) => void = () => undefined) => {
  const changed = structuredClone(old);
  change(changed);
  return [changed, { operation: 'UPDATE', oldObject: old }] as const;
};

describe('pods', () => {
  it('reports on its own ones, and removes and evicts them', async () => {
    const [changed, more] = update(mine, (each) => (each['status'] = { phase: 'Running' }));
    expect(await answer(pods, changed, { ...more, subresource: 'status' })).toBe('ok');
    expect(await answer(pods, undefined, { operation: 'DELETE', oldObject: mine })).toBe('ok');
    expect(await answer(pods, object('Pod', 'p'), { subresource: 'eviction' })).toBe('ok');
  });

  it('leaves those of others alone', async () => {
    const [changed, more] = update(others);
    expect(await answer(pods, changed, { ...more, subresource: 'status' })).toMatch(/can only update pod status/);
    expect(await answer(pods, undefined, { operation: 'DELETE', oldObject: others })).toMatch(/can only delete pods/);
    expect(await answer(pods, object('Pod', 'others'), { subresource: 'eviction' })).toMatch(/can only evict pods/);
    const waiting = pod();
    expect(await answer(pods, undefined, { operation: 'DELETE', oldObject: waiting })).toMatch(/can only delete/);
  });

  it('changes nothing of them but their status', async () => {
    const [labelled, more] = update(mine, (each) => (each.metadata.labels = { app: 'x' }));
    expect(await answer(pods, labelled, { ...more, subresource: 'status' })).toMatch(/labels through pod status/);
    expect(await answer(pods, labelled, more)).toMatch(/unexpected operation "UPDATE"/);
    expect(await answer(pods, mine, { subresource: 'binding' })).toMatch(/unexpected pod subresource "binding"/);
  });

  const mirror = (spec: object, owner: object = { name: 'n1', uid: 'uid-n1' }): KubeObject => {
    const made = pod({ nodeName: 'n1', ...spec }, { 'kubernetes.io/config.mirror': 'x' });
    made.metadata.ownerReferences = [{ apiVersion: 'v1', kind: 'Node', ...owner } as never];
    return made;
  };

  it.each<[string, () => KubeObject, RegExp]>([
    ['a mirror pod of its own', () => mirror({}), /^ok$/],
    ['any other pod', () => pod({ nodeName: 'n1' }), /can only create mirror pods/],
    ['a mirror pod of another node', () => mirror({ nodeName: 'n2' }), /spec.nodeName set to itself/],
    ['one with an account', () => mirror({ serviceAccountName: 'x' }), /service account/],
    ['one with a secret', () => mirror({ volumes: [{ secret: { secretName: 'x' } }] }), /secret/],
    ['one with a config map', () => mirror({ volumes: [{ configMap: { name: 'x' } }] }), /configmap/],
    ['one of another owner', () => mirror({}, { name: 'n2', uid: 'x' }), /owner reference/],
    ['one of a former self', () => mirror({}, { name: 'n1', uid: 'former' }), /owner reference/],
  ])('creates %s', async (_, make, expected) => expect(await answer(pods, make())).toMatch(expected));
});

describe('nodes', () => {
  const self = object('Node', 'n1', { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }, '');
  const relabelled = (labels: Record<string, string>) => update(self, (each) => (each.metadata.labels = { ...labels }));

  it('registers and reports itself alone', async () => {
    expect(await answer(nodes, self)).toBe('ok');
    expect(await answer(nodes, ...update(self, (each) => (each['status'] = {})))).toBe('ok');
    const other = object('Node', 'n2', {}, '');
    expect(await answer(nodes, other)).toMatch(/node "n1" is not allowed to modify node "n2"/);
    expect(await answer(nodes, ...update(other))).toMatch(/not allowed to modify node/);
    expect(await answer(nodes, undefined, { operation: 'DELETE', oldObject: other })).toMatch(/not allowed/);
  });

  it.each<[string, boolean]>([
    ['kubernetes.io/hostname', true],
    ['kubernetes.io/arch', true],
    ['topology.kubernetes.io/zone', true],
    ['node.kubernetes.io/anything', true],
    ['kubevirt.io/schedulable', true],
    ['cpu-model.node.kubevirt.io/EPYC', true],
    ['godwit.dev/accelerator', true],
    ['plain', true],
    ['node-restriction.kubernetes.io/secure', false],
    ['x.node-restriction.kubernetes.io/secure', false],
    ['node-role.kubernetes.io/control-plane', false],
    ['kubernetes.io/whatever', false],
    ['some.k8s.io/thing', false],
  ])('says of itself %s: %s', async (label, isAllowed) => {
    const expected = isAllowed ? /^ok$/ : /is not allowed to/;
    const created = structuredClone(self);
    created.metadata.labels = { [label]: 'x' };
    expect(await answer(nodes, created)).toMatch(expected);
    expect(await answer(nodes, ...relabelled({ [label]: 'x' }))).toMatch(expected);
    const unlabelled = structuredClone(self);
    expect(await answer(nodes, unlabelled, { operation: 'UPDATE', oldObject: created })).toMatch(expected);
    expect(await answer(nodes, created, { operation: 'UPDATE', oldObject: created })).toBe('ok');
  });

  it('takes neither taints from itself nor gives itself owners', async () => {
    expect(await answer(nodes, ...update(self, (each) => (each['spec'] = {})))).toMatch(/modify taints/);
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'y' };
    const owned = update(self, (each) => (each.metadata.ownerReferences = [owner]));
    expect(await answer(nodes, ...owned)).toMatch(/modify ownerReferences/);
  });
});

describe('other kinds', () => {
  it('its own lease', async () => {
    expect(await answer(leases, object('Lease', 'n1', {}, 'kube-node-lease'))).toBe('ok');
    expect(await answer(leases, object('Lease', 'n2', {}, 'kube-node-lease'))).toMatch(/same name/);
    expect(await answer(leases, object('Lease', 'n1', {}, 'ns'))).toMatch(/system namespace/);
  });

  it.each<[string, object | undefined, RegExp]>([
    ['its pod', { kind: 'Pod', name: 'p', uid: 'uid-p' }, /^ok$/],
    ['nothing', undefined, /not bound to a pod/],
    ['a secret', { kind: 'Secret', name: 'p', uid: 'uid-p' }, /not bound to a pod/],
    ['a pod of no matter which uid', { kind: 'Pod', name: 'p' }, /without a uid/],
    ['a former pod', { kind: 'Pod', name: 'p', uid: 'former' }, /does not match/],
    ['a pod elsewhere', { kind: 'Pod', name: 'others', uid: 'uid-others' }, /different node/],
  ])('a token bound to %s', async (_, boundObjectRef, expected) => {
    const request = { ...object('ServiceAccount', 'robot'), spec: { ...(boundObjectRef && { boundObjectRef }) } };
    expect(await answer(accounts, request as KubeObject, { subresource: 'token' })).toMatch(expected);
  });

  it('no token of an account that its pod does not have', async () => {
    const spec = { boundObjectRef: { kind: 'Pod', name: 'p', uid: 'uid-p' } };
    const request = { ...object('ServiceAccount', 'admin'), spec } as KubeObject;
    expect(await answer(accounts, request, { subresource: 'token' })).toMatch(/does not have/);
  });

  it.each<[string, string, RegExp]>([
    ['system:node:n1', 'kubernetes.io/kubelet-serving', /^ok$/],
    ['system:node:n2', 'kubernetes.io/kubelet-serving', /CN=system:node:n1/],
    ['system:node:n2', 'kubernetes.io/kube-apiserver-client-kubelet', /CN=system:node:n1/],
    ['anything', 'example.com/own', /^ok$/],
  ])('a certificate for %s by %s', async (commonName, signerName, expected) => {
    const { requestPem } = await makeCertificateRequest({ commonName, organizations: ['system:nodes'] });
    const spec = { signerName, request: Buffer.from(requestPem).toString('base64') };
    expect(await answer(requests, object('CertificateSigningRequest', 'r', { spec }, ''))).toMatch(expected);
  });

  it('does not care about anything else, nor about who is no node', async () => {
    expect(await answer(claims, object('PersistentVolumeClaim', 'c'))).toBe('ok');
    expect(plugin.handles(attributesOf(pods, pod()))).toBe(false);
  });

  it('refuses a node without a name', async () => {
    const nameless = userContext({ user: { username: 'system:node:', groups: ['system:nodes'] } });
    const attributes = { ...attributesOf(nodes, object('Node', 'n1', {}, '')), context: nameless };
    expect((await refused(plugin, attributes))?.message).toMatch(/could not determine node/);
  });
});
