import { describe, expect, it } from 'vitest';
import type { KubeVirt, KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { Client } from '../../kube/client.ts';
import { validateKubeVirt } from './kubevirts.ts';
import type { AdmissionRequest, Verdict } from './review.ts';

const { signal } = new AbortController();

function kubeVirt(name: string, configuration: KubeVirtConfiguration = {}): KubeVirt {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'KubeVirt',
    metadata: { name, namespace: 'kubevirt' },
    spec: { configuration },
  };
}

async function judge(request: Partial<AdmissionRequest>, known: KubeVirt[] = []): Promise<Verdict> {
  const client = { list: async () => ({ items: known }) } as unknown as Client;
  const webhook = validateKubeVirt({
    client,
    configuration: () => ({}),
    unheard: () => [],
    random: undefined as never,
    clock: undefined as never,
    recorder: undefined as never,
    cordons: undefined as never,
    rivals: undefined as never,
  });
  const resource = { group: 'kubevirt.io', version: 'v1', resource: 'kubevirts' };
  return webhook({ uid: 'u', resource, operation: 'UPDATE', userInfo: {}, ...request }, signal);
}

describe('the configuration', () => {
  it('is one', async () => {
    const object = kubeVirt('second');
    expect(await judge({ operation: 'CREATE', object })).toEqual({ allowed: true });
    expect(await judge({ operation: 'CREATE', object }, [kubeVirt('first')])).toMatchObject({
      allowed: false,
      status: { message: 'Forbidden: KubeVirt is already created: kubevirt/first' },
    });
    expect(await judge({ operation: 'CREATE', object }, [kubeVirt('second')])).toEqual({ allowed: true });
  });

  it.each<[string, KubeVirtConfiguration, KubeVirtConfiguration, boolean]>([
    ['stays', { migrations: { maxDowntimeMs: 5 } }, { migrations: { maxDowntimeMs: 5 } }, true],
    ['is changed', { migrations: { maxDowntimeMs: 5 } }, { migrations: { maxDowntimeMs: 6 } }, false],
    ['comes', {}, { migrations: { maxDowntimeMs: 6 } }, false],
    [
      'comes with its gate',
      {},
      {
        migrations: { maxDowntimeMs: 6 },
        developerConfiguration: { featureGates: ['MigrationStallDetection'] },
      },
      true,
    ],
  ])('in which the downtime %s', async (_what, before, after, isAllowed) => {
    const verdict = await judge({ oldObject: kubeVirt('one', before), object: kubeVirt('one', after) });
    expect(verdict.allowed).toBe(isAllowed);
  });

  it('may name gates that nobody knows', async () => {
    const object = kubeVirt('one', { developerConfiguration: { featureGates: ['LiveMigration', 'Flying'] } });
    expect(await judge({ object })).toEqual({
      allowed: true,
      warnings: ['spec.configuration.developerConfiguration.featureGates[1]: unknown feature gate "Flying"'],
    });
  });

  it('can go', async () => expect(await judge({ operation: 'DELETE' })).toEqual({ allowed: true }));
});
