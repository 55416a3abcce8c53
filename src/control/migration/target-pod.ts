import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { CREATED_BY_LABEL, MIGRATION_NAME_ANNOTATION, MIGRATION_UID_LABEL } from '../../api/kubevirt/well-known.ts';
import type { Affinity, Pod, PodAffinityTerm } from '../../migration/fit/objects.ts';
import type { TargetPod } from '../../migration/phase/facts.ts';
import { derivedSuffix } from '../../machinery/derived-identity.ts';
import type { LauncherPod } from '../resources.ts';
import { COMPUTE, type LauncherOptions, launcherName, launcherPod } from '../vmi/launcher-pod.ts';
import { isGoingDown } from '../vmi/phase.ts';

/** The launcher pod that a guest moves to. */

/**
 * Its name follows from the migration's UID: a migration has one such pod whoever tries to create it, and how often.
 */
export function targetPodName(
  guest: VirtualMachineInstance,
  { metadata }: Pick<VirtualMachineInstanceMigration, 'metadata'>,
): string {
  const first = launcherName(guest);
  return first.slice(0, first.lastIndexOf('-') + 1) + derivedSuffix(metadata.uid ?? '', 'target');
}

/**
 * The pod to be created for a migration: a launcher as the guest's first, on another node that can take it over, which
 * has the labels that the machine needs.
 */
export function targetPodOf(
  guest: VirtualMachineInstance,
  migration: VirtualMachineInstanceMigration,
  needs: { readonly [label: string]: string },
  options: LauncherOptions,
): Pod {
  const pod = launcherPod(guest, options) as Pod;
  const { metadata, spec = {} } = pod;
  return {
    ...pod,
    metadata: {
      ...metadata,
      name: targetPodName(guest, migration),
      labels: { ...metadata.labels, [MIGRATION_UID_LABEL]: migration.metadata.uid ?? '' },
      annotations: { ...metadata.annotations, [MIGRATION_NAME_ANNOTATION]: migration.metadata.name ?? '' },
    },
    spec: {
      ...spec,
      nodeSelector: {
        ...migration.spec.addedNodeSelector,
        ...needs,
        ...spec.nodeSelector,
      },
      affinity: awayFrom(guest, spec.affinity),
    },
  };
}

/** Beside no other launcher of the same guest. */
function awayFrom({ metadata }: VirtualMachineInstance, affinity: Affinity = {}): Affinity {
  const term: PodAffinityTerm = {
    labelSelector: { matchLabels: { [CREATED_BY_LABEL]: metadata.uid ?? '' } },
    topologyKey: 'kubernetes.io/hostname',
  };
  const { podAntiAffinity = {} } = affinity;
  const { requiredDuringSchedulingIgnoredDuringExecution: required = [] } = podAntiAffinity;
  return {
    ...affinity,
    podAntiAffinity: { ...podAntiAffinity, requiredDuringSchedulingIgnoredDuringExecution: [...required, term] },
  };
}

/** What is looked at in a target pod. */
export function targetPodFacts(pod: LauncherPod): TargetPod {
  const { spec, status, metadata } = pod;
  const compute = status?.containerStatuses?.find(({ name }) => name === COMPUTE);
  const terminated = compute?.state?.terminated;
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  const isDown = isGoingDown(pod) || terminated !== undefined;
  return {
    name: metadata.name ?? '',
    nodeName: spec?.nodeName ?? '',
    isUp: !isDown && Boolean(spec?.nodeName) && status?.phase === 'Running',
    isDown,
    cause: terminated?.message ?? status?.message ?? terminated?.reason ?? status?.reason ?? '',
    isUnschedulable: !spec?.nodeName && scheduled?.status === 'False' && scheduled.reason === 'Unschedulable',
    createdMs: Date.parse(metadata.creationTimestamp ?? ''),
  };
}
