import { describe, expect, it } from 'vitest';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { virtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
  VirtualMachineInstanceMigrationSpec,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import { applyJsonPatch } from '../../machinery/patch/json-patch.ts';
import { mutateMigration, validateChangedMigration, validateNewMigration } from './migrations.ts';
import type { AdmissionRequest, Verdict } from './review.ts';
import type { Rivals } from './rivals.ts';

/** The cases of KubeVirt's migration-create-admitter, migration-update-admitter and migration-create-mutator, and ours. */

const { signal } = new AbortController();
const resource = { group: 'kubevirt.io', version: 'v1', resource: virtualMachineInstanceMigration.plural };
const CONTROLLER = 'system:serviceaccount:kubevirt:godwit-controller';

function migration(
  spec: VirtualMachineInstanceMigrationSpec,
  metadata: object = {},
  phase: MigrationPhase = '',
): VirtualMachineInstanceMigration {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'm', namespace: 'shop', ...metadata },
    spec,
    status: { phase },
  };
}

interface Scene {
  /** The guests that there are, by name. */
  readonly guests?: Readonly<Record<string, object>>;
  readonly rivals?: readonly VirtualMachineInstanceMigration[];
  readonly configuration?: KubeVirtConfiguration;
  /** Classes that users may use. */
  readonly rights?: readonly string[];
  readonly user?: string;
  readonly dryRun?: boolean;
}

const asked: JsonObject[] = [];
const noted: string[] = [];

/** What the creation comes to after both webhooks: the stored object, or the refusal. */
async function create(object: KubeObject, scene: Scene = {}): Promise<Verdict> {
  const { guests = { a: { phase: 'Running' } }, rivals = [], configuration = {}, rights = [], user = 'jane' } = scene;
  const client = {
    find: async (_resource: unknown, _namespace: string, name: string) =>
      Object.hasOwn(guests, name) ? { metadata: { name }, status: guests[name] } : undefined,
    list: async () => ({ items: [{ spec: { configuration } }] }),
    create: async (_resource: unknown, review: { readonly spec: JsonObject }) => {
      asked.push(review.spec);
      const { name } = review.spec['resourceAttributes'] as { readonly name: string };
      return { status: { allowed: rights.includes(name) } };
    },
  } as unknown as Client;
  const context = {
    client,
    configuration: () => configuration,
    unheard: () => [],
    random: undefined as never,
    clock: undefined as never,
    recorder: undefined as never,
    cordons: undefined as never,
    rivals: {
      ofMigration: async () => rivals,
      noteMigration: ({ metadata }: KubeObject) => noted.push(metadata.name ?? ''),
    } as unknown as Rivals,
  };
  const request: AdmissionRequest = {
    uid: 'u',
    resource,
    operation: 'CREATE',
    namespace: 'shop',
    userInfo: { username: user, groups: ['g'] },
    ...(scene.dryRun ? { dryRun: true } : {}),
    object,
  };
  return validateNewMigration(context)({ ...request, object: await mutated(request) }, signal);
}

async function mutated(request: AdmissionRequest): Promise<KubeObject> {
  const verdict = await mutateMigration()(request, signal);
  if (!verdict.allowed) throw new Error('the mutator refuses nothing');
  return applyJsonPatch(request.object as never, (verdict.patch ?? []) as never) as unknown as KubeObject;
}

function messageOf(verdict: Verdict): string {
  return verdict.allowed ? 'ok' : `${verdict.status.code} ${verdict.status.message}`;
}

const HALVES: Scene = {
  configuration: { developerConfiguration: { featureGates: ['DecentralizedLiveMigration'] } },
};
const half = (name: string, halves: object, guest = 'a') =>
  migration({ vmName: guest, vmiName: guest, ...halves }, { name, uid: name });

describe('a new migration', () => {
  const finished = (phase: MigrationPhase) => [
    migration({ vmName: 'a', vmiName: 'a' }, { name: 'x', uid: 'x' }, phase),
  ];
  it.each<[string, VirtualMachineInstanceMigrationSpec, Scene, string]>([
    [
      'should reject Migration spec on create when another VMI migration is in-flight',
      { vmiName: 'a' },
      { rivals: finished('Running') },
      '422 spec.vmiName: in-flight migration detected. Active migration job (x) is currently already in progress for VMI a.',
    ],
    ['should reject invalid Migration spec on create', { vmiName: '' }, {}, '422 spec.vmiName: vmiName is missing'],
    ['should accept valid Migration spec on create', { vmiName: 'a' }, {}, 'ok'],
    [
      'should accept Migration spec on create when previous VMI migration completed',
      { vmiName: 'a' },
      { rivals: finished('Succeeded') },
      'ok',
    ],
    [
      'should reject Migration spec on create when VMI is finalized',
      { vmiName: 'a' },
      { guests: { a: { phase: 'Succeeded' } } },
      '422 spec.vmiName: Cannot migrate VMI in finalized state.',
    ],
    [
      'should reject Migration spec for non-migratable VMIs',
      { vmiName: 'a' },
      {
        guests: {
          a: {
            phase: 'Running',
            conditions: [
              {
                type: 'LiveMigratable',
                status: 'False',
                reason: 'DisksNotLiveMigratable',
                message: 'cannot migrate VMI with mixes shared and non-shared volumes',
              },
            ],
          },
        },
      },
      '422 spec.vmiName: Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: cannot migrate VMI with mixes shared and non-shared volumes',
    ],
    [
      'should reject documents containing unknown or missing fields',
      { vmiName: 'a', extra: true } as VirtualMachineInstanceMigrationSpec,
      {},
      '422 spec.extra: unknown field',
    ],
    ['of a guest that is not there', { vmiName: 'b' }, {}, '422 spec.vmiName: the VMI "shop/b" does not exist'],
    [
      'should reject migration priority set by an external user',
      { vmiName: 'a', priority: 'system-critical' },
      { rights: ['user-triggered'] },
      '403 spec.priority: Forbidden: User "jane" cannot use "system-critical" of resource "migrationpriorities" in API group "kubevirt.io" in the namespace "shop"',
    ],
    [
      'should accept migration priority set by the controller',
      { vmiName: 'a', priority: 'system-critical' },
      { user: CONTROLLER },
      'ok',
    ],
    [
      'of a class that the user may use',
      { vmiName: 'a', priority: 'user-triggered' },
      { rights: ['user-triggered'] },
      'ok',
    ],
    [
      'of a class while there are none',
      { vmiName: 'a', priority: 'user-triggered' },
      {
        user: CONTROLLER,
        configuration: { developerConfiguration: { disabledFeatureGates: ['MigrationPriorityQueue'] } },
      },
      '422 spec.priority: MigrationPriorityQueue feature gate is not enabled in kubevirt resource',
    ],
    [
      'that is a half, while halves are not allowed',
      { vmiName: 'a', receive: { key: 'k' } },
      {},
      '422 spec.receive: DecentralizedLiveMigration feature gate is not enabled in kubevirt resource',
    ],
    ['that receives what nobody waits for yet', { vmiName: 'b', receive: { key: 'k' } }, HALVES, 'ok'],
    [
      'that sends what is not there',
      { vmiName: 'b', sendTo: { key: 'k', connectURL: 'there:9185' } },
      HALVES,
      '422 spec.vmiName: the VMI "shop/b" does not exist',
    ],
    ['that sends a guest', { vmiName: 'a', sendTo: { key: 'k', connectURL: 'there:9185' } }, HALVES, 'ok'],
    [
      'that is the other half of the same guest',
      { vmiName: 'a', sendTo: { key: 'k', connectURL: 'here:9185' } },
      { ...HALVES, rivals: [half('x', { receive: { key: 'k', migrationID: 'k' } })] },
      'ok',
    ],
    [
      'whose key another one has',
      { vmiName: 'a', sendTo: { key: 'k', connectURL: 'there:9185' } },
      { ...HALVES, rivals: [half('x', { sendTo: { key: 'k', migrationID: 'k', connectURL: 'u' } }, 'c')] },
      '422 spec.sendTo.key: the migration shop/x has the same key, and is not over',
    ],
  ])('%s', async (_, spec, scene, message) => {
    expect(messageOf(await create(migration(spec), scene))).toBe(message);
  });

  it('is asked about as who wants it, in its namespace', async () => {
    await create(migration({ vmiName: 'a', priority: 'user-triggered' }));
    expect(asked.at(-1)).toEqual({
      user: 'jane',
      groups: ['g'],
      resourceAttributes: {
        verb: 'use',
        group: 'kubevirt.io',
        resource: 'migrationpriorities',
        name: 'user-triggered',
        namespace: 'shop',
      },
    });
  });
  it('is remembered when it is let pass for good', async () => {
    await create(migration({ vmiName: 'a' }, { name: 'passes' }));
    await create(migration({ vmiName: 'a' }, { name: 'dry' }), { dryRun: true });
    await create(migration({ vmiName: 'b' }, { name: 'refused' }));
    expect(noted.filter((name) => name !== 'm')).toEqual(['passes']);
  });
  it('is completed', async () => {
    const request = { uid: 'u', resource, operation: 'CREATE', userInfo: { username: 'jane' } } as const;
    const stored = await mutated({ ...request, object: migration({ vmiName: 'a', cause: 'Preemption' }) });
    expect(stored).toMatchObject({
      metadata: { labels: { 'kubevirt.io/vmi-name': 'a' }, finalizers: ['kubevirt.io/migrationJobFinalize'] },
      spec: { vmName: 'a', vmiName: 'a', cause: 'User' },
    });
    const verdict = await mutateMigration()({ ...request, object: stored }, signal);
    expect(verdict).toEqual({ allowed: true, patch: [] });
  });
  it('of a wrong shape is left to the server', async () => {
    const object = migration({ vmiName: 7 as never });
    const request = { uid: 'u', resource, operation: 'CREATE', userInfo: {}, object } as const;
    expect(await mutateMigration()(request, signal)).toEqual({ allowed: true });
  });
});

describe('a migration that is there', () => {
  const labels = { 'kubevirt.io/vmi-name': 'a' };
  const more = { ...labels, app: 'x' };
  const RESTRICTED = "422 update of Migration object's spec is restricted";
  const REMOVED = "422 selector label can't be removed from an in-flight migration";
  const MODIFIED = "422 selector label can't be modified on an in-flight migration";
  const one = migration({ vmiName: 'a' }, { labels: more }, 'Running');
  it.each<[string, VirtualMachineInstanceMigration, string]>([
    [
      'should reject Migration on update if spec changes',
      migration({ vmiName: 'b' }, { labels: more }, 'Running'),
      RESTRICTED,
    ],
    ["should accept Migration on update if spec doesn't change", { ...one }, 'ok'],
    [
      'should reject Migration on update if labels include our selector and are removed',
      migration({ vmiName: 'a' }, {}, 'Running'),
      REMOVED,
    ],
    [
      'should reject Migration on update if our selector label is removed',
      migration({ vmiName: 'a' }, { labels: { app: 'x' } }, 'Running'),
      MODIFIED,
    ],
    [
      'should accept Migration on update if non-selector label is removed',
      migration({ vmiName: 'a' }, { labels }, 'Running'),
      'ok',
    ],
    ['may lose all labels once it is over', migration({ vmiName: 'a' }, {}, 'Failed'), 'ok'],
  ])('%s', async (_, object, message) => {
    const request = { uid: 'u', resource, operation: 'UPDATE', userInfo: {}, oldObject: one, object } as const;
    expect(messageOf(await validateChangedMigration()(request, signal))).toBe(message);
  });
});
