import type { KubeObject } from '../api/meta.ts';
import { type Installation, installation } from '../control/installation/install.ts';
import { extensionRights, userRights } from '../extension/rights.ts';
import { synchronizationRights } from '../sync/rights.ts';

/**
 * What a cluster has to have besides our kinds, wherever it is: the namespace, the accounts of all components with the
 * rights of each, the roles of users, and a first configuration. `godwit up` applies it, and `godwit manifests` prints it.
 */
export function wholeInstallation(initial: readonly KubeObject[] = []): Installation {
  return installation({ ours: [...userRights(), ...extensionRights(), ...synchronizationRights()], initial });
}
