import { describe, expect, it } from 'vitest';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { ApiError } from '../../api/status.ts';
import type { Client, WriteOptions } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { migrate, type MigrationWish } from './migrate.ts';

const { signal } = new AbortController();

interface Scene {
  readonly phase?: string;
  readonly missing?: string;
  readonly mayUse?: boolean;
  readonly configuration?: KubeVirtConfiguration;
}

interface Made {
  readonly object: KubeObject;
  readonly options: WriteOptions;
}

/** The migration that is made of a wish. */
async function make(scene: Scene = {}, wish: Partial<MigrationWish> = {}): Promise<Made | undefined> {
  const { phase = 'Running', missing, mayUse = false, configuration = {} } = scene;
  let made: Made | undefined;
  const client = {
    find: async ({ plural }: Resource, _namespace: string, name: string) =>
      plural === missing ? undefined : { metadata: { name }, status: { phase } },
    create: async ({ plural }: Resource, object: KubeObject, _signal: AbortSignal, options: WriteOptions) => {
      if (plural === 'subjectaccessreviews') return { status: { allowed: mayUse } };
      made = { object, options };
      return object;
    },
  } as unknown as Client;
  const user = { username: 'jane', groups: [] };
  const whole = { namespace: 'shop', name: 'a', user, addedNodeSelector: undefined, dryRun: false, ...wish };
  await migrate(client, configuration, whole, signal);
  return made;
}

describe('migrate', () => {
  it('makes a migration as KubeVirt names it', async () => {
    const made = await make({}, { addedNodeSelector: { zone: 'b' } });
    expect(made?.object).toMatchObject({ metadata: { generateName: 'kubevirt-migrate-vm-', namespace: 'shop' } });
    expect(made?.object.spec).toEqual({ vmiName: 'a', cause: 'User', addedNodeSelector: { zone: 'b' } });
    expect(made?.options).toEqual({ dryRun: false });
  });
  it.each<[string, Scene, object]>([
    ['in the class of users, of those who may', { mayUse: true }, { priority: 'user-triggered' }],
    ['below all classes, of others', { mayUse: false }, {}],
    [
      'in no class where there are none',
      { mayUse: true, configuration: { developerConfiguration: { disabledFeatureGates: ['MigrationPriorityQueue'] } } },
      {},
    ],
  ])('is %s', async (_, scene, priority) => {
    expect((await make(scene))?.object.spec).toEqual({ vmiName: 'a', cause: 'User', ...priority });
  });
  it('can be tried', async () => expect((await make({}, { dryRun: true }))?.options).toEqual({ dryRun: true }));
  it.each<[string, Scene, Partial<MigrationWish>, number, string]>([
    ['no machine', { missing: 'virtualmachines' }, {}, 404, 'virtualmachine.kubevirt.io "a" not found'],
    ['no guest', { missing: 'virtualmachineinstances' }, {}, 404, 'virtualmachineinstance.kubevirt.io "a" not found'],
    ['a guest that does not run', { phase: 'Scheduling' }, {}, 409, 'VM is not running'],
    ['labels that are none', {}, { addedNodeSelector: { a: 1 } }, 400, 'values that are texts'],
    ['no labels at all', {}, { addedNodeSelector: 'a' }, 400, 'values that are texts'],
  ])('is refused for %s', async (_, scene, wish, code, message) => {
    const error = await make(scene, wish).catch((refusal: unknown) => refusal as ApiError);
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) as unknown });
  });
});
