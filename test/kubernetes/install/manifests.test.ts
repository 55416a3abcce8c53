import { describe, expect, it } from 'vitest';
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

const apply = (cluster: AdminsCluster, ...manifests: readonly string[]): Promise<string> =>
  pipe(cluster, manifests, 'apply --server-side');

describe('godwit manifests', () => {
  const cluster = installation({
    install: async (admins) => {
      await apply(admins, '--only', 'crds');
      await admins.kubectl.ok(`wait --for condition=Established crd -l ${PART_OF}`);
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

  it('removes everything where all of it is deleted', async () => {
    await pipe(cluster(), [], 'delete --ignore-not-found');
    await eventually(async () => {
      const { kubectl } = cluster();
      const left = await kubectl.ok('get crd,ns,clusterroles,clusterrolebindings,apiservices -o name');
      expect(left.split('\n').filter((name) => /kubevirt|godwit/.test(name))).toEqual([]);
    }, DELETE_MS);
  });
});
