import { describe, expect, it } from 'vitest';
import { hostsOf, registrations } from './registrations.ts';

interface Configuration {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly webhooks: readonly {
    readonly name: string;
    readonly clientConfig: { readonly url?: string; readonly service?: object; readonly caBundle: string };
    readonly failurePolicy: string;
  }[];
}

const AT_ADDRESS = { kind: 'address', host: '::1', port: 9443 } as const;
const AS_SERVICE = { kind: 'service', port: 443 } as const;

function configurations(reach: typeof AT_ADDRESS | typeof AS_SERVICE): Configuration[] {
  return registrations({ reach, authoritiesPem: 'CA' }).filter(
    ({ kind }) => kind === 'ValidatingWebhookConfiguration' || kind === 'MutatingWebhookConfiguration',
  ) as unknown as Configuration[];
}

describe('registrations', () => {
  it('lead to the address, for the aggregation layer by a Service that stands for it', () => {
    const objects = registrations({ reach: AT_ADDRESS, authoritiesPem: 'CA' });
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'Service virt-api',
      'MutatingWebhookConfiguration virt-api-mutator',
      'ValidatingWebhookConfiguration virt-api-validator',
      'APIService v1.subresources.kubevirt.io',
      'APIService v1alpha3.subresources.kubevirt.io',
    ]);
    expect(objects[0]).toMatchObject({ spec: { type: 'ExternalName', externalName: '::1' } });
    expect(configurations(AT_ADDRESS)[0]?.webhooks[0]?.clientConfig).toEqual({
      url: 'https://[::1]:9443/virtualmachines-mutate',
      caBundle: Buffer.from('CA').toString('base64'),
    });
    expect(hostsOf(AT_ADDRESS)).toContain('::1');
  });

  it('lead to the Service where its pods are behind one, which is not ours to make', () => {
    const objects = registrations({ reach: AS_SERVICE, authoritiesPem: 'CA' });
    expect(objects.some(({ kind }) => kind === 'Service')).toBe(false);
    expect(configurations(AS_SERVICE)[0]?.webhooks[0]?.clientConfig.service).toEqual({
      namespace: 'kubevirt',
      name: 'virt-api',
      port: 443,
      path: '/virtualmachines-mutate',
    });
  });

  it('have names and paths of their own', () => {
    const webhooks = configurations(AT_ADDRESS).flatMap((each) => each.webhooks);
    expect(new Set(webhooks.map(({ name }) => name)).size).toBe(webhooks.length);
    expect(new Set(webhooks.map(({ clientConfig }) => clientConfig.url)).size).toBe(webhooks.length);
  });

  it('let nothing of nodes pass unasked', () => {
    const restriction = configurations(AT_ADDRESS)
      .flatMap((each) => each.webhooks)
      .find(({ name }) => name === 'node-restriction.godwit.dev');
    expect(restriction?.failurePolicy).toBe('Fail');
  });

  it('have evictions of launchers asked about where anybody is there to ask, and of nobody else', () => {
    const webhooks = configurations(AT_ADDRESS)
      .filter(({ metadata }) => metadata.name === 'virt-api-validator')
      .flatMap((each) => each.webhooks)
      .filter(({ name }) => name.includes('eviction'));
    expect(webhooks).toMatchObject([
      {
        name: 'virt-launcher-eviction-interceptor.kubevirt.io',
        clientConfig: { url: 'https://[::1]:9443/pod-eviction-validate' },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods/eviction'], operations: ['CREATE'] }],
        matchConditions: [{ name: 'only-vms', expression: 'object.metadata.name.startsWith("virt-launcher")' }],
        failurePolicy: 'Ignore',
        sideEffects: 'NoneOnDryRun',
      },
      {
        name: 'hotplug-pod-eviction-interceptor.kubevirt.io',
        matchConditions: [{ name: 'only-hotplug-pods', expression: 'object.metadata.name.startsWith("hp-volume-")' }],
        failurePolicy: 'Ignore',
        sideEffects: 'NoneOnDryRun',
      },
    ]);
  });
});
