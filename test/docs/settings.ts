import { MIGRATION_PORTS } from '../../src/api/kubevirt/migration-configuration.ts';
import { EXTENSION_PORT, EXTENSION_SERVICE_PORT, METRICS_PORT } from '../../src/cli/manifests/deployments.ts';
import { AGENT_PORTS } from '../../src/cli/node-services.ts';
import { DEFAULT_LISTEN } from '../../src/cli/up.ts';
import { FORWARDED_PORTS } from '../../src/node/machine/port-forwards.ts';
import { SYNCHRONIZATION_PORT } from '../../src/sync/wire/address.ts';

/** What docs/configuration.md says besides what the code says itself. Tests hold it against the code. */

/** Who reads the fields of the KubeVirt resource, by path; one that is above several speaks for all of them. */
export const READERS: { readonly [path: string]: string } = {
  'spec.configuration.migrations.parallelMigrationsPerCluster':
    'the migration controller ([migration.md](migration.md))',
  'spec.configuration.migrations.parallelOutboundMigrationsPerNode': 'the migration controller',
  'spec.configuration.migrations.parallelInboundMigrationsPerNode': 'the migration controller',
  'spec.configuration.migrations.priorityAgeingSeconds': 'the migration controller',
  'spec.configuration.migrations.finishedMigrationsKept': 'the migration controller',
  'spec.configuration.migrations.bandwidthPerMigration': 'the source agent; a policy may say otherwise',
  'spec.configuration.migrations.completionTimeoutPerGiB': 'the source agent; a policy may say otherwise',
  'spec.configuration.migrations.progressTimeout': 'the source agent; a policy may say otherwise',
  'spec.configuration.migrations.maxDowntimeMs': 'the source agent; a policy may say otherwise',
  'spec.configuration.migrations.allowAutoConverge': 'the source agent; a policy may say otherwise',
  'spec.configuration.migrations.allowPostCopy': 'both agents; a policy may say otherwise',
  'spec.configuration.migrations.allowWorkloadDisruption': 'the source agent; a policy may say otherwise',
  'spec.configuration.migrations.disableTLS': 'both agents; a policy may say otherwise',
  'spec.configuration.migrations.experimental': 'the source agent; a policy may say otherwise',
  'spec.configuration.migrations.portRange': 'the target agent',
  'spec.configuration.migrations.nodeDrainTaintKey': 'the evacuation controller ([evacuation.md](evacuation.md))',
  'spec.configuration.migrations.disruptionHoldSeconds': 'the disruption controller ([preemption.md](preemption.md))',
  'spec.configuration.migrations.criticalPreemptionHoldSeconds': 'the disruption controller',
  'spec.configuration.migrations.syncTimeoutSeconds':
    'the migration controller and the synchronization controller ([decentralized.md](decentralized.md))',
  'spec.configuration.migrations.utilityVolumesTimeout': 'nobody',
  'spec.configuration.migrations.unsafeMigrationOverride': 'nobody',
  'spec.configuration.migrations.matchSELinuxLevelOnMigration': 'nobody',
  'spec.configuration.migrations.network': 'nobody',
  'spec.configuration.evictionStrategy': 'the webhooks, when a guest is made and when its pod is evicted',
  'spec.configuration.developerConfiguration.featureGates': 'all, see below',
  'spec.configuration.developerConfiguration.disabledFeatureGates': 'all, see below',
  'spec.configuration.developerConfiguration.memoryOvercommit': 'the webhook, when a guest is made',
  'spec.configuration.developerConfiguration.cpuAllocationRatio': 'the guest controller, when it makes a pod',
  'spec.configuration.network': 'the webhook, when a guest is made',
  'spec.configuration.machineType': 'the webhook, when a machine or guest is made',
  'spec.configuration.cpuModel': 'the webhook, when a guest is made',
  'spec.configuration.cpuRequest': 'the guest controller, when it makes a pod',
  'spec.configuration.vmRolloutStrategy': 'the machine controller ([updates.md](updates.md))',
  'spec.configuration.liveUpdateConfiguration': 'the machine controller',
  'spec.configuration.vmStateStorageClass': 'nobody',
  'spec.workloadUpdateStrategy': 'the workload updater ([updates.md](updates.md))',
  'spec.synchronizationPort': 'the synchronization controller ([synchronization.md](synchronization.md))',
  'spec.infra': 'nobody',
  'spec.workloads': 'nobody',
};

/** Variable, who reads it, what it says. */
export const ENVIRONMENT: readonly (readonly [name: string, by: string, says: string])[] = [
  ['GODWIT_DATA_DIR', 'all commands', 'the data directory, where `--data-dir` does not say; `~/.godwit` by default'],
  ['KUBECONFIG', 'commands that look at a cluster', 'kubeconfig files, separated by colons, as kubectl reads them'],
  ['HOME', 'all commands', 'where `~` is'],
  [
    'KUBERNETES_SERVICE_HOST',
    'commands that look at a cluster',
    'set in pods: the cluster is that of the pod, where there is no kubeconfig',
  ],
  ['NO_COLOR', 'commands that print for people', 'set to anything: no colours'],
  ['TERM', 'commands that print for people', '`dumb`: no colours'],
  ['PATH', 'agents', 'where programs such as `qemu-system-x86_64` are looked for'],
];

const range = (first: number | undefined, last: number | undefined): string => `${first} to ${last}`;
const [AGENTS, COPIES, FORWARDS] = [
  range(AGENT_PORTS[0], AGENT_PORTS.at(-1)),
  range(MIGRATION_PORTS.first, MIGRATION_PORTS.last),
  range(FORWARDED_PORTS.first, FORWARDED_PORTS.last),
];
const { host, port } = DEFAULT_LISTEN;

/** What no other page tells: they lead to this one. */
export const TOLD_ONCE = [AGENTS, COPIES, FORWARDS];

/** What a firewall between two clusters lets through. */
export const PORTS_BETWEEN_CLUSTERS = [
  [`${SYNCHRONIZATION_PORT}, or \`spec.synchronizationPort\``, 'synchronization'],
  [AGENTS, 'agents, which tell each other of a guest on its way ([nodes.md](nodes.md))'],
  [`${COPIES}, or \`migrations.portRange\` of the target`, 'memory and disks, encrypted'],
];

/** Process, where it listens, how, who dials. */
export const PORTS: readonly (readonly string[])[] = [
  [
    '`godwit up`: API server',
    `\`--listen\`; ${host}:${port}, or the port of last time (\`port\`), or a free one`,
    'HTTPS; client certificates and tokens',
    'kubectl, `godwit`, agents, the synchronization controller',
  ],
  [
    '`godwit up`: webhooks and subresources',
    '127.0.0.1, a port that is kept in `extension-port`',
    "HTTPS; the API server's front-proxy certificate",
    'the API server',
  ],
  [
    '`godwit extension`, on Kubernetes',
    `\`--listen\`, which is port ${EXTENSION_PORT} of its pods; the Service \`kubevirt/virt-api\` has it at ${EXTENSION_SERVICE_PORT}`,
    "HTTPS; the API server's front-proxy certificate",
    'the API server',
  ],
  [
    '`godwit agent`',
    `the node's address, the port of last time (\`port\`), or the first free one of ${AGENTS}, or any where none is`,
    'HTTPS; certificates of nodes, tokens and certificates that the API server knows; agents of other clusters by pinned keys',
    'the API server (logs, proxy), the extension (console, power), other agents',
  ],
  [
    'QEMU of a guest that comes',
    `the agent's \`--migration-address\`, or the target node's address, as for guests of other clusters; free ports of \`migrations.portRange\`, or of ${COPIES}, while it comes`,
    'TLS with certificates for this one migration; with `disableTLS` a secret that is good once',
    'the source QEMU, or its agent',
  ],
  [
    '`godwit agent`: forwarded ports of guests',
    `the node's address, a free port of ${FORWARDS} for each`,
    'what the guest speaks',
    'anybody',
  ],
  [
    '`godwit sync`',
    `\`--listen\`, or \`spec.synchronizationPort\`, or ${SYNCHRONIZATION_PORT}; of \`godwit up\`: the host of \`--listen\`, port \`synchronization-port\``,
    'gRPC over mutual TLS; clusters that are [trusted](trust.md)',
    'synchronization controllers of other clusters',
  ],
  [
    '`godwit controllers`, `extension` and `sync`: health and metrics',
    `\`--metrics\`, which is port ${METRICS_PORT} of their pods on Kubernetes; of \`godwit up\`: 127.0.0.1, port \`synchronization-metrics-port\``,
    'HTTP, without any proof: keep it to yourself',
    'Prometheus, probes ([metrics.md](metrics.md))',
  ],
];

/** Path below the data directory, what is in it, what its loss means. */
export const DIRECTORIES: readonly (readonly [path: string, what: string, lost: string])[] = [
  ['data/', 'all objects of the API (LMDB)', 'the cluster is lost, unless there is a backup; guests that run go on'],
  ['pki/', 'the certificate authorities and keys of the cluster', 'nobody who has joined is believed any more'],
  ['kubeconfig', "the administrator's access", 'written anew by `godwit up`'],
  ['lock', 'who holds the directory', 'nothing, once nobody holds it'],
  [
    'port, extension-port, synchronization-port, synchronization-metrics-port',
    'the ports of last time',
    'others are taken',
  ],
  ['images/', 'images of guests, shared by the nodes of this machine', '`godwit image import` again'],
  ['shared/', 'volumes that all nodes of this machine share', "guests' data"],
  ['synchronization/', 'of the synchronization controller: kubeconfig, token, `sync.log`', 'written anew'],
  ['nodes/NAME/', 'the data directory of an agent that `godwit up` runs; `agent.log`', 'see below'],
  [
    'nodes/NAME/journal',
    'what the node knows of the right to run',
    'its guests are in question until the node is declared out of service',
  ],
  ['nodes/NAME/pki/, kubeconfig, agent-id', 'who the node is', 'it joins as a new one'],
  [
    'nodes/NAME/runs/',
    'one directory for each machine: sockets, logs, the serial log',
    'machines that run cannot be found again',
  ],
  [
    'nodes/NAME/pods/, notes/, stamps/, migrations/, probe/',
    'what was prepared for machines, how they ended, which disks are the newest',
    'made anew, but for what was known of ended guests',
  ],
  ['nodes/NAME/volumes/', 'volumes of the class `local`', "guests' data"],
];

/** Object, what is in it. */
export const OBJECTS: readonly (readonly string[])[] = [
  ['KubeVirt `kubevirt/kubevirt`', 'the configuration, above'],
  [
    'ConfigMap `kubevirt/godwit-migration-slots`',
    'who has a slot for a migration: written by the migration controller, for reading only',
  ],
  [
    'ConfigMap `kubevirt/godwit-trust`',
    'which clusters are trusted, and which addresses are dialed ([trust.md](trust.md))',
  ],
  ['Secret `kubevirt/kubevirt-virt-api-certs`', 'the certificate of webhooks and subresources'],
  [
    'Secret `kubevirt/godwit-synchronization-ca`, ConfigMap `kubevirt/godwit-synchronization-bundle`',
    'the authorities of the cluster for others: keys, and certificates',
  ],
];
