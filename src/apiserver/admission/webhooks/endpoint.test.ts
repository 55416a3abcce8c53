import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../env/test.ts';
import { TestRegistry } from '../../registry/registry.fixture.ts';
import type { WebhookClientConfig } from './configuration.ts';
import { EndpointError, findEndpoint } from './endpoint.ts';

async function scene(subsets?: object[], spec: object = { ports: [{ port: 443 }] }): Promise<TestRegistry> {
  const registry = await TestRegistry.open();
  const metadata = { name: 'hook', namespace: 'ns' };
  await registry.put({ apiVersion: 'v1', kind: 'Service', metadata, spec });
  if (subsets) await registry.put({ apiVersion: 'v1', kind: 'Endpoints', metadata, subsets });
  return registry;
}

const find = async (config: WebhookClientConfig, registry = scene(), timeoutMs = 10_000) =>
  findEndpoint(config, timeoutMs, await registry, seededRandom(1));
const service = { name: 'hook', namespace: 'ns' };
const ready = [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 8443 }] }];

describe('findEndpoint', () => {
  it.each([
    ['https://h.example.com/validate', 'https://h.example.com/validate?timeout=10s'],
    ['https://h.example.com:9443', 'https://h.example.com:9443/?timeout=10s'],
    ['https://[::1]:9443/x/y', 'https://[::1]:9443/x/y?timeout=10s'],
  ])('takes the URL %s', async (url, expected) => {
    expect(await find({ url })).toEqual({ url: expected, shownUrl: expected });
  });

  it('resolves a service to an address of its endpoints', async () => {
    expect(await find({ service: { ...service, path: '/validate' } }, scene(ready), 2500)).toEqual({
      url: 'https://10.0.0.1:8443/validate?timeout=3s',
      shownUrl: 'https://hook.ns.svc:443/validate?timeout=3s',
      serverName: 'hook.ns.svc',
    });
  });

  it('follows the name of the port, and brackets IPv6', async () => {
    const spec = {
      ports: [
        { name: 'metrics', port: 80 },
        { name: 'hooks', port: 8443 },
      ],
    };
    const ports = [
      { name: 'metrics', port: 9090 },
      { name: 'hooks', port: 9443 },
    ];
    const registry = scene([{ addresses: [{ ip: 'fd00::1' }], ports }], spec);
    expect((await find({ service: { ...service, port: 8443 } }, registry)).url).toBe(
      'https://[fd00::1]:9443/?timeout=10s',
    );
  });

  it('spreads over all ready addresses', async () => {
    const registry = await scene([
      { addresses: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }], ports: [{ port: 1 }] },
      { addresses: [{ ip: '10.0.0.3' }], ports: [{ port: 2 }] },
      { notReadyAddresses: [{ ip: '10.0.0.4' }], ports: [{ port: 1 }] },
    ]);
    const random = seededRandom(1);
    const hosts = new Set<string>();
    for (let round = 0; round < 100; round++) {
      hosts.add(new URL(findEndpoint({ service }, 10_000, registry, random).url).host);
    }
    expect([...hosts].sort()).toEqual(['10.0.0.1:1', '10.0.0.2:1', '10.0.0.3:2']);
  });

  it.each<[string, WebhookClientConfig, Promise<TestRegistry>, string]>([
    ['nothing', {}, scene(), 'webhook configuration must have either service or URL'],
    ['an http URL', { url: 'http://x/' }, scene(), 'Unparsable URL: "http://x/" is not an https URL'],
    ['no URL', { url: 'x' }, scene(), 'Unparsable URL: "x" is not an https URL'],
    ['an unknown service', { service: { ...service, name: 'nope' } }, scene(), 'service "nope" not found'],
    ['an unknown port', { service: { ...service, port: 1 } }, scene(), 'no service port 1 found for service "hook"'],
    ['no endpoints', { service }, scene(), 'no endpoints available for service "hook"'],
    ['nothing ready', { service }, scene([{ ports: [{ port: 1 }] }]), 'no endpoints available for service "hook"'],
    [
      'an external name',
      { service },
      scene(ready, { type: 'ExternalName' }),
      'unsupported service type "ExternalName"',
    ],
  ])('refuses %s', async (_, config, registry, message) => {
    await expect(find(config, registry)).rejects.toThrow(EndpointError);
    await expect(find(config, registry)).rejects.toThrow(message);
  });
});
