import { beforeEach, describe, expect, it } from 'vitest';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
  VirtualMachineInstanceMigrationSpec,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import { type Indexes, ObjectCache } from '../../kube/object-cache.ts';
import { keyOf, type Resource } from '../../kube/resource.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import { IndexedRivals } from './rivals.ts';

const { signal } = new AbortController();

/** What the server has, and what the watch has told of it. */
let stored: Map<string, KubeObject>;
let caches: Map<string, ObjectCache<KubeObject>>;
let reads: string[];
let rivals: IndexedRivals;

beforeEach(() => {
  stored = new Map();
  caches = new Map();
  reads = [];
  const informers = {
    of: ({ plural }: Resource, indexes: Indexes<KubeObject>) => {
      const cache = new ObjectCache<KubeObject>(indexes);
      caches.set(plural, cache);
      return Object.assign(cache, { synced: Promise.resolve() });
    },
  } as unknown as SharedInformers;
  const client = {
    find: async ({ plural }: Resource, namespace: string, name: string) => {
      reads.push(name);
      return stored.get(`${plural} ${keyOf({ metadata: { namespace, name } })}`);
    },
  } as unknown as Client;
  rivals = new IndexedRivals(client, informers);
});

function store(plural: string, object: KubeObject): void {
  stored.set(`${plural} ${keyOf(object)}`, object);
}

function tell(plural: string, object: KubeObject): void {
  caches.get(plural)?.set(object);
}

function migration(
  name: string,
  spec: VirtualMachineInstanceMigrationSpec,
  phase: MigrationPhase = 'Running',
  namespace = 'shop',
): VirtualMachineInstanceMigration {
  return { apiVersion: '', kind: '', metadata: { name, namespace }, spec, status: { phase } };
}

const MIGRATIONS = 'virtualmachineinstancemigrations';
const POLICIES = 'migrationpolicies';

async function found(of: VirtualMachineInstanceMigration): Promise<string[]> {
  return (await rivals.ofMigration(of, signal)).map(({ metadata }) => metadata.name ?? '');
}

describe('rivals of a migration', () => {
  const next = migration('next', { vmName: 'a' }, '');
  it('are those of the same guest, and nobody else is read', async () => {
    for (const each of [
      migration('same', { vmName: 'a' }),
      migration('other', { vmName: 'b' }),
      migration('over', { vmName: 'a' }, 'Failed'),
      migration('elsewhere', { vmName: 'a' }, 'Running', 'far'),
    ]) {
      store(MIGRATIONS, each);
      tell(MIGRATIONS, each);
    }
    expect(await found(next)).toEqual(['same']);
    expect(reads).toEqual(['same']);
  });
  it('are those with the same key, wherever they are', async () => {
    const far = migration('far', { vmName: 'b', receive: { key: '1' } }, 'WaitingForSync', 'far');
    store(MIGRATIONS, far);
    tell(MIGRATIONS, far);
    expect(await found(migration('next', { vmName: 'a', receive: { key: '1' } }, ''))).toEqual(['far']);
    expect(await found(migration('next', { vmName: 'a', receive: { key: '2' } }, ''))).toEqual([]);
  });
  it('are over as soon as the server says so', async () => {
    tell(MIGRATIONS, migration('ended', { vmName: 'a' }));
    store(MIGRATIONS, migration('ended', { vmName: 'a' }, 'Succeeded'));
    tell(MIGRATIONS, migration('gone', { vmName: 'a' }));
    expect(await found(next)).toEqual([]);
  });
  it('are known before the watch tells of them', async () => {
    const first = migration('first', { vmName: 'a' }, '');
    rivals.noteMigration(first);
    expect(await found(next)).toEqual([]);
    store(MIGRATIONS, first);
    expect(await found(next)).toEqual(['first']);
    tell(MIGRATIONS, first);
    expect(await found(next)).toEqual(['first']);
    expect(await found(first)).toEqual([]);
  });
  it('are not noted without end', async () => {
    for (let index = 0; index < 10_001; index++) rivals.noteMigration(migration(`m${index}`, { vmName: `g${index}` }));
    for (const index of [0, 10_000]) store(MIGRATIONS, migration(`m${index}`, { vmName: `g${index}` }));
    expect(await found(migration('next', { vmName: 'g0' }))).toEqual([]);
    expect(await found(migration('next', { vmName: 'g10000' }))).toEqual(['m10000']);
  });
});

describe('rivals of a policy', () => {
  it('select by the same, in whichever form', async () => {
    const policy = (name: string, labels: object): MigrationPolicy => ({
      apiVersion: '',
      kind: '',
      metadata: { name },
      spec: { selectors: { namespaceSelector: labels as never } },
    });
    for (const each of [policy('flat', { a: 'b' }), policy('other', { a: 'c' })]) {
      store(POLICIES, each);
      tell(POLICIES, each);
    }
    const names = async (of: MigrationPolicy): Promise<unknown[]> =>
      (await rivals.ofPolicy(of, signal)).map(({ metadata }) => metadata.name);
    expect(await names(policy('next', { matchLabels: { a: 'b' } }))).toEqual(['flat']);
    expect(await names(policy('flat', { a: 'b' }))).toEqual([]);
    expect(reads).toEqual(['flat']);
    rivals.notePolicy(policy('noted', { z: '' }));
    store(POLICIES, policy('noted', { z: '' }));
    expect(await names(policy('next', { z: '' }))).toEqual(['noted']);
  });
});

describe('budgets that are no guest’s', () => {
  const pod: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', labels: { app: 'web' } } };
  const budget = (name: string, selector: object | undefined, more: KubeObject['metadata'] = {}): KubeObject => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'shop', ...more },
    spec: selector ? { selector } : {},
  });
  const guest = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    name: 'web',
    uid: 'u',
    controller: true,
  };
  it.each<[string, KubeObject, boolean]>([
    ['selects it', budget('a', { matchLabels: { app: 'web' } }), true],
    ['selects all', budget('b', {}), true],
    ['selects others', budget('c', { matchLabels: { app: 'db' } }), false],
    ['selects nothing', budget('d', undefined), false],
    ['is in another namespace', budget('e', {}, { namespace: 'lab' }), false],
    ['is a guest’s', budget('f', {}, { ownerReferences: [guest] }), false],
  ])('one that %s', (_, known, expected) => {
    tell('poddisruptionbudgets', known);
    expect(rivals.hasForeignBudget(pod)).toBe(expected);
  });
});
