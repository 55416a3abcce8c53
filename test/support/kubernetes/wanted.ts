/** What the run is on, as `npm run test:kubernetes` says it. */

/** Where the programs of a Kubernetes control plane are; undefined where none of our own is wanted. */
export const PROGRAMS = process.env['GODWIT_TEST_KUBERNETES'];

/** Helm's program; undefined where no chart is to be installed. */
export const HELM = process.env['GODWIT_TEST_HELM'];

/** The kubeconfig of a cluster that is there already, to be used instead of one of our own. */
export const FOREIGN_KUBECONFIG = process.env['GODWIT_TEST_KUBECONFIG'];

/** Whether clusters under test are to be real Kubernetes. */
export const IS_KUBERNETES = FOREIGN_KUBECONFIG !== undefined || (PROGRAMS !== undefined && PROGRAMS !== '');
