import { describe, expect, it } from 'vitest';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { objectsOf, POLICIES } from '../../api/kubevirt/manifests.fixture.ts';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import { mutateMigrationPolicy, validateMigrationPolicy } from './migration-policies.ts';
import type { Verdict } from './review.ts';
import type { Rivals } from './rivals.ts';

const { signal } = new AbortController();
const resource = { group: 'migrations.kubevirt.io', version: 'v1alpha1', resource: 'migrationpolicies' };

function policy(name: string, spec: object): MigrationPolicy {
  return {
    apiVersion: 'migrations.kubevirt.io/v1alpha1',
    kind: 'MigrationPolicy',
    metadata: { name },
    spec: { selectors: {}, ...spec },
  };
}

interface Scene {
  readonly old?: MigrationPolicy;
  readonly rivals?: readonly MigrationPolicy[];
  readonly configuration?: KubeVirtConfiguration;
  /** Where it has changed since it was heard of. */
  readonly configurationNow?: KubeVirtConfiguration;
  readonly dryRun?: boolean;
}

const noted: string[] = [];

async function judge(object: MigrationPolicy, scene: Scene = {}): Promise<Verdict> {
  const configuration = scene.configurationNow ?? scene.configuration;
  const context = {
    client: { list: async () => ({ items: [{ spec: { configuration } }] }) } as unknown as Client,
    random: undefined as never,
    clock: undefined as never,
    recorder: undefined as never,
    configuration: () => scene.configuration ?? {},
    unheard: () => [],
    cordons: undefined as never,
    rivals: {
      ofPolicy: async () => scene.rivals ?? [],
      notePolicy: ({ metadata }: KubeObject) => noted.push(metadata.name ?? ''),
    } as unknown as Rivals,
  };
  const changed = scene.old
    ? ({ operation: 'UPDATE', oldObject: scene.old } as const)
    : { operation: 'CREATE' as const };
  const request = { uid: 'u', resource, userInfo: {}, object, dryRun: scene.dryRun ?? false, ...changed };
  return validateMigrationPolicy(context)(request, signal);
}

describe('a policy', () => {
  const selectors = { virtualMachineInstanceSelector: { size: 'small' } };
  const rivals = [policy('first', { selectors })];
  it('names each field that is wrong', async () => {
    const object = policy('bad', { turbo: 1, bandwidthPerMigration: '-1', completionTimeoutPerGiB: -1 });
    expect(await judge(object)).toMatchObject({
      allowed: false,
      status: {
        code: 422,
        details: {
          causes: [
            { field: 'spec.turbo', message: 'unknown field' },
            { field: 'spec.bandwidthPerMigration', message: 'Invalid value: "-1": must not be negative' },
            { field: 'spec.completionTimeoutPerGiB', message: 'Invalid value: -1: must not be negative' },
          ],
        },
      },
    });
  });
  it('has selectors of its own', async () => {
    expect(await judge(policy('second', { selectors }), { rivals })).toMatchObject({
      allowed: false,
      status: { message: 'spec.selectors: Duplicate value: the policy "first" has the same selectors' },
    });
    expect((await judge(policy('first', { selectors }), { rivals })).allowed).toBe(true);
  });
  it('that has them already can still be changed', async () => {
    const old = policy('second', { selectors });
    expect((await judge(policy('second', { selectors, allowPostCopy: true }), { rivals, old })).allowed).toBe(true);
    const elsewhere = policy('second', {});
    expect((await judge(policy('second', { selectors }), { rivals, old: elsewhere })).allowed).toBe(false);
  });
  it('needs gates only for what it changes', async () => {
    const object = policy('one', { maxDowntimeMs: 300 });
    expect((await judge(object)).allowed).toBe(false);
    expect((await judge(object, { old: object })).allowed).toBe(true);
    const configuration = { developerConfiguration: { featureGates: ['MigrationDowntimeTuning'] } };
    expect((await judge(object, { configuration })).allowed).toBe(true);
    expect((await judge(object, { configurationNow: configuration })).allowed).toBe(true);
  });
  it('is remembered when it is let pass for good', async () => {
    noted.length = 0;
    await judge(policy('passes', {}));
    await judge(policy('dry', {}), { dryRun: true });
    await judge(policy('refused', { turbo: 1 }));
    expect(noted).toEqual(['passes']);
  });
  it('of the proposal gets texts for values, and is as it was otherwise', async () => {
    const [object, flat] = objectsOf(POLICIES);
    const request = { uid: 'u', resource, operation: 'CREATE', userInfo: {} } as const;
    const verdict = await mutateMigrationPolicy()({ ...request, object: object! }, signal);
    const spec = object!.spec as MigrationPolicy['spec'];
    const namespaceSelector = { matchLabels: { 'hpc-workloads': 'true', 'xyz-workloads-type': '' } };
    const value = { ...spec, selectors: { ...spec.selectors, namespaceSelector } };
    expect(verdict).toEqual({ allowed: true, patch: [{ op: 'replace', path: '/spec', value }] });
    expect(await mutateMigrationPolicy()({ ...request, object: flat! }, signal)).toEqual({ allowed: true });
  });
});
