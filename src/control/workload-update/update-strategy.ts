import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import { parseGoDuration } from '../../machinery/schema/duration.ts';

/** How guests get a new launcher, as the cluster's configuration says. */
export interface UpdateStrategy {
  readonly isMovingAllowed: boolean;
  readonly isEvictingAllowed: boolean;
  readonly evictionsPerBatch: number;
  readonly batchIntervalMs: number;
}

/** KubeVirt's. */
const EVICTIONS_PER_BATCH = 10;
const BATCH_INTERVAL_MS = 60_000;

/** What the configuration says; nothing is allowed where it says nothing. */
export function updateStrategyOf({ spec }: KubeVirt): UpdateStrategy {
  const {
    workloadUpdateMethods = [],
    batchEvictionSize = EVICTIONS_PER_BATCH,
    batchEvictionInterval,
  } = spec.workloadUpdateStrategy ?? {};
  return {
    isMovingAllowed: workloadUpdateMethods.includes('LiveMigrate'),
    isEvictingAllowed: workloadUpdateMethods.includes('Evict'),
    evictionsPerBatch: Math.max(0, batchEvictionSize),
    batchIntervalMs: durationMs(batchEvictionInterval) ?? BATCH_INTERVAL_MS,
  };
}

/** Whether the control plane is being exchanged itself: which launcher will be the current one is not settled then. */
export function isBeingDeployed({ status }: KubeVirt): boolean {
  const { phase = '', ...rest } = status ?? {};
  const { observedDeploymentID, targetDeploymentID } = rest as { [field: string]: unknown };
  const isOtherWanted = targetDeploymentID !== undefined && targetDeploymentID !== observedDeploymentID;
  return (phase !== '' && phase !== 'Deployed') || isOtherWanted;
}

const NANOSECONDS_PER_MS = 1_000_000n;

/** A duration such as `1m30s`; undefined for what is none. */
function durationMs(text: string | undefined): number | undefined {
  const nanoseconds = text === undefined ? undefined : parseGoDuration(text);
  return nanoseconds === undefined || nanoseconds < 0n ? undefined : Number(nanoseconds / NANOSECONDS_PER_MS);
}
