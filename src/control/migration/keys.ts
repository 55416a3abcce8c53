import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_NAME_ANNOTATION, MIGRATION_UID_LABEL } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { controllerOf } from '../../kube/owner.ts';
import { pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { LauncherPod } from '../resources.ts';

/** What migrations, guests and pods know each other by. */

/** The guest that a migration is of. */
export function guestKeyOf({ metadata, spec }: VirtualMachineInstanceMigration): string {
  return `${metadata.namespace ?? ''}/${spec.vmName ?? spec.vmiName ?? ''}`;
}

/** The same, for an index. */
export function guestKeysOf(migration: VirtualMachineInstanceMigration): readonly string[] {
  return [guestKeyOf(migration)];
}

/** What the halves of a pair have in common, for an index; nothing where it is no half. */
export function pairKeysOf({ spec }: VirtualMachineInstanceMigration): readonly string[] {
  const key = pairKeyOf(spec);
  return key === undefined ? [] : [key];
}

/** An object's own UID, for an index. */
export function uidsOf({ metadata }: KubeObject): readonly string[] {
  return [metadata.uid ?? ''];
}

/** UID of the migration that a launcher pod was made for; none for other pods. */
export function migrationUidsOf(pod: LauncherPod): readonly string[] {
  const uid = pod.metadata.labels?.[MIGRATION_UID_LABEL];
  return uid !== undefined && isLauncher(pod) ? [uid] : [];
}

/** The same migration, by namespace and name. */
export function jobKeysOf(pod: LauncherPod): readonly string[] {
  const name = pod.metadata.annotations?.[MIGRATION_NAME_ANNOTATION];
  return name !== undefined && migrationUidsOf(pod).length > 0 ? [`${pod.metadata.namespace ?? ''}/${name}`] : [];
}

/** The guest that a launcher pod is of, by namespace and name; none for other pods. */
export function launchedGuestsOf(pod: LauncherPod): readonly string[] {
  return isLauncher(pod) ? [`${pod.metadata.namespace ?? ''}/${controllerOf(pod)?.name ?? ''}`] : [];
}

/** Labels can be on any pod; only who may hold guests can make pods that guests own. */
function isLauncher(pod: LauncherPod): boolean {
  const owner = controllerOf(pod);
  return owner?.kind === 'VirtualMachineInstance' && owner.apiVersion.startsWith('kubevirt.io/');
}
