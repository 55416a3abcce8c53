import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InProcessApi } from '../../../test/support/in-process.ts';
import { realClock } from '../../env/real.ts';
import { Client } from '../../kube/client.ts';
import { InProcessTransport } from '../../kube/in-process-transport.ts';
import { kubeVirts } from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { install, installation } from './install.ts';

const clusterRoles: Resource = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'clusterroles',
  kind: 'ClusterRole',
  namespaced: false,
};
const { signal } = new AbortController();

let api: InProcessApi;
let client: Client;

beforeAll(async () => {
  api = await InProcessApi.start();
  const admin = { user: 'admin', groups: ['system:masters'] };
  client = new Client(new InProcessTransport((request) => api.core.handle(request), admin), 'godwit');
  await again();
});
afterAll(() => api.stop());

const again = (): Promise<void> => install(client, realClock, installation({ ours: [], initial: [] }), signal);

describe('installing', () => {
  it('serves our kinds', async () => {
    expect((await client.list(kubeVirts, {}, signal)).items.map(({ metadata }) => metadata.name)).toEqual(['kubevirt']);
  });

  it('leaves the configuration to the admin once it is there', async () => {
    const body = { spec: { configuration: { network: { defaultNetworkInterface: 'bridge' } } } };
    await client.patch(kubeVirts, 'kubevirt', 'kubevirt', { type: 'merge', body }, signal);
    await again();
    const { spec } = await client.get(kubeVirts, 'kubevirt', 'kubevirt', signal);
    expect(spec.configuration?.network?.defaultNetworkInterface).toBe('bridge');
  });

  it('brings back rights that were taken away', async () => {
    const name = 'godwit:controller';
    const { rules } = (await client.get(clusterRoles, '', name, signal)) as { rules?: unknown[] };
    await client.patch(clusterRoles, '', name, { type: 'merge', body: { rules: [] } }, signal);
    await again();
    expect(await client.get(clusterRoles, '', name, signal)).toMatchObject({ rules });
    expect(rules?.length).toBeGreaterThan(0);
  });

  it('says which kind a server does not serve', async () => {
    const alien = { apiVersion: 'alien.example.com/v1', kind: 'Alien', metadata: { name: 'a' } };
    const more = installation({ ours: [alien], initial: [] });
    await expect(install(client, realClock, more, signal)).rejects.toThrow(
      'the server does not serve alien.example.com/v1 Alien',
    );
  });
});
