import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Anything } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import type { AdminsCluster } from './cluster.ts';
import { bringNewerKinds, IMAGE, installation, PART_OF } from './installation.ts';

/** `godwit manifests`, applied with kubectl to a real control plane as docs/kubernetes.md says, whose kubelets are played. */

const DELETE_MS = 180_000;

/** Passes what is printed on to kubectl. */
async function pipe(cluster: AdminsCluster, manifests: readonly string[], kubectl: string): Promise<string> {
  const stdin = await cluster.cli('manifests', ...manifests);
  return cluster.kubectl.ok(`${kubectl} -f -`, { stdin, killAfterMs: DELETE_MS });
}

/** A claim of a user, and the volume that it is bound to. */
function claimOf(path: string): object[] {
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
  const [capacity, metadata] = [{ storage: '1Mi' }, { name: 'kept' }];
  const claim = { ...spec, volumeName: 'kept', resources: { requests: capacity } };
  return [
    { apiVersion: 'v1', kind: 'PersistentVolume', metadata, spec: { ...spec, capacity, hostPath: { path } } },
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: claim },
  ];
}

const apply = (cluster: AdminsCluster, ...manifests: readonly string[]): Promise<string> =>
  pipe(cluster, manifests, 'apply --server-side');

describe('godwit manifests', () => {
  const cluster = installation({
    install: async (admins) => {
      await apply(admins, '--only', 'crds');
      // It gives up on a kind that has no conditions yet.
      await eventually(() => admins.kubectl.ok(`wait --for condition=Established crd -l ${PART_OF}`));
      await apply(admins, '--image', IMAGE);
    },
    upgrade: async (admins, image) => {
      await bringNewerKinds(admins);
      await apply(admins, '--only', 'rights', 'components', '--image', image);
    },
    uninstall: (admins) => pipe(admins, ['--only', 'components', 'registrations'], 'delete'),
    keepsRights: true,
    reinstall: (admins) => apply(admins, '--only', 'components', 'registrations', '--image', IMAGE),
  });

  it('removes everything where all of it is deleted, but for nodes, their data, and claims with theirs', async () => {
    const { kubectl, directory, nodesDirectory } = cluster();
    const volume = join(directory, 'volume');
    mkdirSync(volume);
    writeFileSync(join(volume, 'disk.img'), 'of a user');
    for (const object of claimOf(volume)) await kubectl.apply(object);
    await kubectl.ok('wait pvc kept --for jsonpath={.status.phase}=Bound');
    const stays = async (): Promise<unknown[]> => {
      const { items } = await kubectl.json('get pvc/kept pv/kept node/node-1 node/node-2');
      const journals = ['node-1', 'node-2'].map((node) => existsSync(join(nodesDirectory, node, 'journal')));
      const files = [readFileSync(join(volume, 'disk.img'), 'utf8'), ...journals];
      return [...items.map(({ metadata }: Anything) => metadata.uid), ...files];
    };
    const before = await stays();
    expect(before.slice(-3)).toEqual(['of a user', true, true]);
    await pipe(cluster(), [], 'delete --ignore-not-found');
    await eventually(async () => {
      const kinds = 'crd,ns,clusterroles,clusterrolebindings,roles,rolebindings,apiservices,priorityclasses';
      const webhooks = 'validatingwebhookconfigurations,mutatingwebhookconfigurations';
      const left = await kubectl.ok(`get ${kinds},${webhooks} -n kube-system -o name`);
      expect(left.split('\n').filter((name) => /virt|godwit/.test(name))).toEqual([]);
    }, DELETE_MS);
    expect(await stays()).toEqual(before);
  });
});
