import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InProcessApi } from '../../../test/support/in-process.ts';
import type { Logger } from '../../env/ports.ts';
import { ManualClock, silentLogger } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import { InProcessTransport } from '../../kube/in-process-transport.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Node, PersistentVolume } from '../../migration/fit/objects.ts';
import { DirectoryRemoval } from './directory-removal.ts';

const nodes: Resource<Node> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };
const volumes: Resource<PersistentVolume> = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumes',
  kind: 'PersistentVolume',
  namespaced: false,
};
const { signal } = new AbortController();

let api: InProcessApi;
let client: Client;
let removed: string[];
let broken: string | undefined;
let stop: () => Promise<void>;
let clock: ManualClock;
let complaints: string[];

async function startAgent(): Promise<void> {
  const stopping = new AbortController();
  const complain = (message: string): void => void complaints.push(message);
  const log: Logger = { ...silentLogger, child: () => log, warn: complain, error: complain };
  const service = new DirectoryRemoval({
    env: { ...api.env, log },
    client,
    nodeName: 'a',
    localPath: '/local/',
    sharedPath: '/shared',
    files: {
      remove: async (path) => {
        if (path === broken) throw new Error('the disk says no');
        removed.push(path);
      },
    },
  });
  const running = service.run(stopping.signal);
  stop = async () => {
    stopping.abort();
    await running;
  };
}

beforeEach(async () => {
  clock = new ManualClock();
  api = await InProcessApi.start({ env: { clock } });
  const admin = { user: 'admin', groups: ['system:masters'] };
  client = new Client(new InProcessTransport((request) => api.core.handle(request), admin), 'test');
  removed = [];
  complaints = [];
  broken = undefined;
  await client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } }, signal);
  await startAgent();
});
afterEach(async () => {
  await stop();
  await api.stop();
});

interface Kind {
  readonly node?: string;
  readonly path?: string;
  readonly policy?: string;
  readonly maker?: string;
  readonly phase?: string;
}

/** A volume of ours that nobody has any more, unless told otherwise. */
async function volume(name: string, kind: Kind = {}): Promise<void> {
  const { node, policy = 'Delete', maker = 'godwit.dev/directories', phase = 'Released' } = kind;
  const path = kind.path ?? `/${node === undefined ? 'shared' : 'local'}/${name}`;
  const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node ?? ''] }];
  const place =
    node === undefined
      ? { hostPath: { path } }
      : { local: { path }, nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } };
  const annotations = {
    'pv.kubernetes.io/provisioned-by': maker,
    ...(node === undefined ? {} : { 'godwit.dev/node': node }),
  };
  const object: PersistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: annotations as Record<string, string> },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      persistentVolumeReclaimPolicy: policy,
      ...place,
    },
  };
  await client.create(volumes, object, signal);
  await setPhase(name, phase);
}

const setPhase = (name: string, phase: string) =>
  client.patch(volumes, '', name, { type: 'merge', body: { status: { phase } } }, signal, { subresource: 'status' });
const said = async () =>
  (await client.get(nodes, '', 'a', signal)).metadata.annotations?.['godwit.dev/removed-volumes'];

async function until(check: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    clock.advance(100);
    try {
      return await check();
    } catch (error) {
      if (tries === 100) throw error;
    }
  }
}

describe('directories that nobody needs', () => {
  it('are removed and told of, until the volume is gone too', async () => {
    await volume('one', { node: 'a' });
    await volume('two');
    await until(async () => expect(await said()).toBe('one two'));
    expect([...removed].sort()).toEqual(['/local/one', '/shared/two']);
    await client.delete(volumes, '', 'one', signal);
    await until(async () => expect(await said()).toBe('two'));
    await client.delete(volumes, '', 'two', signal);
    await until(async () => expect(await said()).toBeUndefined());
    expect(removed).toHaveLength(2);
  });

  it('are told of again after a restart, and forgotten where the volume has gone meanwhile', async () => {
    await volume('one');
    await volume('two');
    await until(async () => expect(await said()).toBe('one two'));
    await stop();
    await client.delete(volumes, '', 'one', signal);
    await startAgent();
    await until(async () => expect(await said()).toBe('two'));
  });

  it('are told of once the node has registered, and nobody complains before', async () => {
    await stop();
    await client.delete(nodes, '', 'a', signal);
    await startAgent();
    await volume('one');
    await until(async () => expect(removed).toEqual(['/shared/one']));
    for (let turn = 0; turn < 20; turn++) await until(async () => undefined);
    await client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } }, signal);
    await until(async () => expect(await said()).toBe('one'));
    expect(complaints).toEqual([]);
  });

  it('do not wait for one that cannot be removed', async () => {
    broken = '/shared/bad';
    await volume('bad');
    await volume('good');
    await until(async () => expect(await said()).toBe('good'));
    broken = undefined;
    await until(async () => expect(await said()).toBe('bad good'));
  });
});

describe('a directory stays', () => {
  it.each<[string, Kind]>([
    ['of another node', { node: 'b' }],
    ['of somebody else', { maker: 'example.com/maker' }],
    ['that is to be kept', { policy: 'Retain' }],
    ['that somebody has', { phase: 'Bound' }],
    ['elsewhere', { path: '/etc' }],
    ['that is no direct child', { path: '/shared/deep/v' }],
    ['of another name', { path: '/shared/other' }],
    ['reached by a detour', { path: '/shared/../shared/v' }],
  ])('%s', async (_, kind) => {
    // A server takes no detours, but a volume may be older than its rules.
    await volume('v', kind).catch((error: unknown) => expect(String(error)).toContain("must not contain '..'"));
    await volume('canary');
    await until(async () => expect(await said()).toBe('canary'));
    expect(removed).toEqual(['/shared/canary']);
  });
});
