import { isFeatureGateEnabled } from '../../api/kubevirt/feature-gates.ts';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import { compareVersions } from '../../kube/resource-version.ts';
import type { SlotLedger } from '../../migration/slots/ledger.ts';
import type { SlotRules } from '../../migration/slots/slot-book.ts';

/** The rules of slots, from the cluster's configuration. */

/** More would not fit into the one object that holds them all. */
const SLOTS_PER_CLUSTER_MAX = 1000;
/** Two synchronization controllers tell each other of a slot within a second; this is for those that start just now. */
const SENDER_TIMEOUT_MS = 30_000;
/** Long enough for another receiver, whose sender is there, to go first. */
const RECEIVER_PAUSE_MS = 10_000;

/** What the cluster's configuration says of slots, where there is one. */
export function slotRules(kubeVirt: Pick<KubeVirt, 'metadata' | 'spec'> | undefined): SlotRules {
  const configuration = kubeVirt?.spec.configuration;
  const {
    parallelMigrationsPerCluster = 5,
    parallelOutboundMigrationsPerNode = 2,
    parallelInboundMigrationsPerNode = 2,
    priorityAgeingSeconds = 0,
  } = configuration?.migrations ?? {};
  return {
    limits: {
      perCluster: Math.min(parallelMigrationsPerCluster, SLOTS_PER_CLUSTER_MAX),
      outboundPerNode: parallelOutboundMigrationsPerNode,
      inboundPerNode: parallelInboundMigrationsPerNode,
    },
    // Older than every version that there is.
    limitsVersion: kubeVirt?.metadata.resourceVersion ?? '0',
    isByPriority: isFeatureGateEnabled('MigrationPriorityQueue', configuration),
    ageingMs: priorityAgeingSeconds * 1000,
    senderTimeoutMs: SENDER_TIMEOUT_MS,
    receiverPauseMs: RECEIVER_PAUSE_MS,
  };
}

/** The rules with the limits of the ledger, where those are newer: somebody else knows more than we do. */
export function newestRules(rules: SlotRules, { limits, limitsVersion }: SlotLedger): SlotRules {
  const order = compareVersions(rules.limitsVersion, limitsVersion);
  return order !== undefined && order < 0 ? { ...rules, limits, limitsVersion } : rules;
}
