import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { parseFieldSelector } from '../../machinery/selectors.ts';
import type { UserInfo } from '../http/message.ts';
import { MemoryEngine } from '../storage/memory-engine.ts';
import { Store } from '../storage/store.ts';
import { BucketView } from '../registry/view.ts';
import { AuthorizerChain, NodeAuthorizer } from './node-authorizer.ts';
import { NodePods } from './node-pods.ts';
import type { AuthorizationAttributes } from './policy-rule.ts';

const node = (name: string): UserInfo => ({ username: `system:node:${name}`, groups: ['system:nodes'] });

/** `verb resource[/subresource][.group] [namespace/]name`, and what is selected by fields. */
function wanting(text: string, selector = ''): AuthorizationAttributes {
  const [verb = '', what = '', where = ''] = text.split(' ');
  const [, resource = '', subresource = '', group = ''] = /^([^/.]+)(?:\/([^.]+))?(?:\.(.+))?$/.exec(what) ?? [];
  const [namespace = '', name = ''] = where.includes('/') ? where.split('/') : ['', where];
  const fieldRequirements = parseFieldSelector(selector);
  return { verb, isResource: true, path: '', group, namespace, resource, subresource, name, fieldRequirements };
}

let store: Store;
let authorizer: NodeAuthorizer;
const may = (who: string, text: string, selector?: string): boolean =>
  authorizer.authorize(node(who), wanting(text, selector)).allowed;

async function put(bucket: string, object: Pick<KubeObject, 'metadata'> & Record<string, unknown>): Promise<void> {
  const { namespace, name = '' } = object.metadata;
  const key = namespace === undefined ? name : `${namespace}/${name}`;
  const expected = store.latest(bucket, key)?.revision ?? 0;
  await store.put({ bucket, key, expected, encode: () => JSON.stringify(object) });
}

async function remove(bucket: string, key: string): Promise<void> {
  const expected = store.latest(bucket, key)?.revision ?? 0;
  await store.delete({ bucket, key, expected, encode: () => '{}' });
}

const pod = (name: string, nodeName: string, spec: object, more: object = {}) => ({
  metadata: { namespace: 'ns', name, uid: `${name}-uid`, ...more },
  spec: { nodeName, ...spec },
});

const USER_OF_ALL = {
  serviceAccountName: 'robot',
  imagePullSecrets: [{ name: 'pull' }],
  initContainers: [{ env: [{ valueFrom: { secretKeyRef: { name: 'env' } } }] }],
  containers: [
    {
      env: [{ valueFrom: { configMapKeyRef: { name: 'env' } } }],
      envFrom: [{ secretRef: { name: 'from' } }, { configMapRef: { name: 'from' } }],
    },
  ],
  volumes: [
    { name: 'a', secret: { secretName: 'volume' } },
    { name: 'b', configMap: { name: 'volume' } },
    { name: 'c', projected: { sources: [{ secret: { name: 'projected' } }, { configMap: { name: 'projected' } }] } },
    { name: 'd', persistentVolumeClaim: { claimName: 'disk' } },
    { name: 'e', ephemeral: {} },
    { name: 'f', csi: { nodePublishSecretRef: { name: 'csi' } } },
  ],
};

beforeEach(async () => {
  store = await Store.open(new MemoryEngine(), {
    onFatal: (error) => {
      throw error;
    },
  });
  const registry = { view: (bucket: string) => new BucketView(store, bucket) } as never;
  authorizer = new NodeAuthorizer(new NodePods(store), registry);
});

describe('what pods refer to', () => {
  it.each([
    ...['pull', 'env', 'from', 'volume', 'projected', 'csi'].map((name) => `get secrets ns/${name}`),
    ...['env', 'from', 'volume', 'projected'].map((name) => `get configmaps ns/${name}`),
    'list secrets ns/volume',
    'watch configmaps ns/volume',
    'get persistentvolumeclaims ns/disk',
    'get persistentvolumeclaims ns/user-e',
    'get persistentvolumes pv',
    'create serviceaccounts/token ns/robot',
  ])('is for its node alone: %s', async (text) => {
    await put('persistentvolumes', { metadata: { name: 'pv' }, spec: { claimRef: { namespace: 'ns', name: 'disk' } } });
    expect(may('n1', text)).toBe(false);
    await put('pods', pod('user', '', USER_OF_ALL));
    expect(may('n1', text)).toBe(false);
    await put('pods', pod('user', 'n1', USER_OF_ALL));
    expect(may('n1', text)).toBe(true);
    expect(may('n2', text)).toBe(false);
    await remove('pods', 'ns/user');
    expect(may('n1', text)).toBe(false);
  });

  it.each([
    'list secrets ns/',
    'list secrets',
    'watch secrets',
    'get secrets other/volume',
    'get secrets ns/other',
    'update secrets ns/volume',
    'delete secrets ns/volume',
    'list persistentvolumeclaims ns/disk',
    'update persistentvolumeclaims ns/disk',
    'patch persistentvolumeclaims/status ns/disk',
    'get persistentvolumes other',
    'get serviceaccounts ns/robot',
    'create serviceaccounts/token ns/other',
    'get pods ns/other',
    'get pods ns/waiting',
    'get pods/log ns/user',
  ])('opens nothing else: %s', async (text) => {
    await put('pods', pod('user', 'n1', USER_OF_ALL));
    await put('pods', pod('other', 'n2', {}));
    await put('pods', pod('waiting', '', {}));
    expect(may('n1', text)).toBe(false);
  });

  it('lets a node see its pods, and that a pod is gone', async () => {
    await put('pods', pod('p', 'n1', {}));
    expect(may('n1', 'get pods ns/p')).toBe(true);
    expect(may('n2', 'get pods ns/p')).toBe(false);
    await remove('pods', 'ns/p');
    expect(may('n1', 'get pods ns/p')).toBe(true);
  });

  it('counts by pods: what two refer to stays until both are gone', async () => {
    const spec = { volumes: [{ name: 'v', secret: { secretName: 's' } }] };
    await put('pods', pod('one', 'n1', spec));
    await put('pods', pod('two', 'n1', spec));
    await remove('pods', 'ns/one');
    expect(may('n1', 'get secrets ns/s')).toBe(true);
    await remove('pods', 'ns/two');
    expect(may('n1', 'get secrets ns/s')).toBe(false);
  });

  it('follows a pod of the same name that is another, and containers that come later', async () => {
    await put('pods', pod('p', 'n1', { volumes: [{ name: 'v', secret: { secretName: 'old' } }] }));
    await remove('pods', 'ns/p');
    await put('pods', pod('p', 'n1', { volumes: [{ name: 'v', secret: { secretName: 'new' } }] }));
    expect(may('n1', 'get secrets ns/old')).toBe(false);
    expect(may('n1', 'get secrets ns/new')).toBe(true);
    const ephemeralContainers = [{ envFrom: [{ secretRef: { name: 'debug' } }] }];
    await put('pods', pod('p', 'n1', { ephemeralContainers }));
    expect(may('n1', 'get secrets ns/debug')).toBe(true);
  });

  it('knows what was there before it', async () => {
    await put('pods', pod('user', 'n1', USER_OF_ALL));
    expect(new NodePods(store).refers('n1', 'secrets', 'ns', 'volume')).toBe(true);
  });

  it('does not take the word of a mirror pod, which its node wrote', async () => {
    await put('pods', pod('m', 'n1', USER_OF_ALL, { annotations: { 'kubernetes.io/config.mirror': 'x' } }));
    expect(may('n1', 'get secrets ns/volume')).toBe(false);
    expect(may('n1', 'get pods ns/m')).toBe(true);
  });
});

describe('what is its own', () => {
  it.each<[string, boolean, string?]>([
    ['get nodes n1', true],
    ['list nodes n1', true],
    ['update nodes n1', true],
    ['patch nodes/status n1', true],
    ['create nodes', true],
    ['get nodes n2', false],
    ['list nodes', false],
    ['patch nodes/status n2', false],
    ['delete nodes n1', false],
    ['get nodes/proxy n1', false],
    ['list pods', true, 'spec.nodeName=n1'],
    ['watch pods ns/', true, 'status.phase=Running,spec.nodeName=n1'],
    ['list pods', false],
    ['list pods', false, 'spec.nodeName=n2'],
    ['list pods', false, 'spec.nodeName!=n1'],
    ['create pods ns/', true],
    ['delete pods ns/p', true],
    ['patch pods/status ns/p', true],
    ['create pods/eviction ns/p', true],
    ['update pods ns/p', false],
    ['patch pods ns/p', false],
    ['create pods/exec ns/p', false],
    ['create pods/binding ns/p', false],
    ['get leases.coordination.k8s.io kube-node-lease/n1', true],
    ['create leases.coordination.k8s.io kube-node-lease/', true],
    ['update leases.coordination.k8s.io kube-node-lease/n2', false],
    ['update leases.coordination.k8s.io ns/n1', false],
    ['list leases.coordination.k8s.io kube-node-lease/n1', false],
  ])('%s: %s', (text, expected, selector) => expect(may('n1', text, selector)).toBe(expected));

  it.each<[string, boolean]>([
    ['create tokenreviews.authentication.k8s.io', true],
    ['create subjectaccessreviews.authorization.k8s.io', true],
    ['create events ns/', true],
    ['create certificatesigningrequests.certificates.k8s.io', true],
    ['update certificatesigningrequests/approval.certificates.k8s.io x', false],
    ['list namespaces', false],
    ['get virtualmachineinstances.kubevirt.io ns/vm', false],
  ])('as every node: %s: %s', (text, expected) => expect(may('n1', text)).toBe(expected));
});

describe('who is no node', () => {
  it.each<[string, UserInfo]>([
    ['by name alone', { username: 'system:node:n1', groups: ['system:authenticated'] }],
    ['by group alone', { username: 'n1', groups: ['system:nodes'] }],
    ['without a name', node('')],
  ])('%s may nothing', (_, user) => {
    expect(authorizer.authorize(user, wanting('get nodes n1')).allowed).toBe(false);
    expect(authorizer.authorize(user, wanting('create events ns/')).allowed).toBe(false);
  });
});

describe('AuthorizerChain', () => {
  it('allows what one allows, and gives all reasons else', () => {
    const says = (allowed: boolean, reason: string) => ({ authorize: () => ({ allowed, reason }) });
    const ask = (...all: ReturnType<typeof says>[]) =>
      new AuthorizerChain(...all).authorize(node('n'), wanting('get pods'));
    expect(ask(says(false, 'a'), says(true, 'b'))).toEqual({ allowed: true, reason: 'b' });
    expect(ask(says(false, 'a'), says(false, ''), says(false, 'c'))).toEqual({ allowed: false, reason: 'a\nc' });
  });
});
