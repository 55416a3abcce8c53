/** What the run is on, as `npm run test:kubernetes` says it. */

/** Where the programs of a Kubernetes control plane are; undefined where none of our own is wanted. */
export const PROGRAMS = process.env['GODWIT_TEST_KUBERNETES'];

/** Helm's program; undefined where no chart is to be installed. */
export const HELM = process.env['GODWIT_TEST_HELM'];

/** Below which directory the programs are that run containers for kubelets; undefined where no kubelets are wanted. */
export const CONTAINER_PROGRAMS = process.env['GODWIT_TEST_CONTAINERS'];

/** Below which directory buildah is, with runc and what it needs; undefined where no Containerfile is to be built. */
export const BUILDAH = process.env['GODWIT_TEST_BUILDAH'];

/** The kubeconfig of a cluster that is there already, to be used instead of one of our own. */
export const FOREIGN_KUBECONFIG = process.env['GODWIT_TEST_KUBECONFIG'];

/** This machine's address, at which that cluster reaches what tests run. */
export const ADDRESS = process.env['GODWIT_TEST_ADDRESS'] ?? '127.0.0.1';

/** Into which directory it goes what our components use of their rights; undefined where nobody is going to ask. */
export const RIGHTS_USED = process.env['GODWIT_TEST_RIGHTS_USED'];

/** Fails, with the reason, where there is a cluster already, and something is to be shown that only one of our own can show. */
export function needsOwnCluster(reason: string): void {
  if (FOREIGN_KUBECONFIG === undefined) return;
  throw new Error(`this cannot be shown on the cluster of GODWIT_TEST_KUBECONFIG: ${reason}; run it without`);
}

/** Whether clusters under test are to be real Kubernetes. */
export const IS_KUBERNETES = FOREIGN_KUBECONFIG !== undefined || (PROGRAMS !== undefined && PROGRAMS !== '');
