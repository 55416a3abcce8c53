import { BLOCKED, type Scene, SHOP, TROUBLE } from './scenes.ts';

/**
 * Which pages tests play, and what no test types as it is. What is played is in blocks marked `console`, all else in blocks
 * marked `text`: `test/tidy/documentation.test.ts` sees that it is so, and that nothing is forgotten.
 */

/** Played on one cluster of three nodes, one after another; each leaves it as it found it. */
export const ON_ONE_CLUSTER = [
  'docs/tutorials/first-vm.md',
  'docs/tutorials/drain.md',
  'docs/tutorials/policies.md',
  'docs/tutorials/priorities.md',
  'docs/tutorials/another-machine.md',
] as const;

/** Pages about one topic, played on the same cluster, where their scenes are set for them. */
export const IN_SCENES: ReadonlyMap<string, Scene> = new Map([
  ['docs/migration.md', SHOP],
  ['docs/eviction.md', SHOP],
  ['docs/evacuation.md', BLOCKED],
  ['docs/operations.md', TROUBLE],
]);

/** Starts two clusters itself. */
export const ON_TWO_CLUSTERS = 'docs/tutorials/another-cluster.md';

/** Played on a Kubernetes control plane, by `npm run test:kubernetes`. */
export const ON_KUBERNETES = 'docs/tutorials/kubernetes.md';

/** Played on a cluster without nodes. */
export const WITHOUT_NODES = ['docs/guests.md', 'docs/nodes.md', 'docs/trust.md', 'docs/updates.md'] as const;

/** Played by a newcomer who has cloned the repository: the section `Start`. */
export const BY_A_NEWCOMER = 'README.md';

/** Played by whoever then reads metrics with the token: `test/monitoring/scrape.test.ts`. */
export const BY_PROMETHEUS = 'docs/metrics.md';

/** Made from the help of the commands; that each example names what there is is tested with all other commands. */
export const GENERATED = 'docs/commands.md';

const MOVE = 'needs two clusters: docs/tutorials/another-cluster.md plays one, test/decentralized/move.test.ts others';
const RESTORE = 'takes the cluster away: test/vm/restore.test.ts does it with directories of its own';
const LOST = 'needs a host that is lost for good: src/control/seizure/seizures.test.ts, test/eviction/taints.test.ts';
const RECLAIM = 'needs a guest that was lost: test/extension/reclaim.test.ts types it of one';
const INSTALL = 'needs an image and kubelets: test/kubernetes/install does it where these are played';
const TUTORIAL = 'needs Kubernetes: docs/tutorials/kubernetes.md plays it, test/kubernetes/tutorial.test.ts follows';
const BESIDE = 'needs kubelets: test/kubernetes/kubelets.test.ts does it with two';
const IMAGE = 'takes minutes: test/kubernetes/image.test.ts does it';
const SEEDS = 'takes minutes: test/cli/simulate.test.ts runs it for less';
const TRUST = 'needs two clusters: docs/tutorials/another-cluster.md plays it';

/**
 * Commands that are shown and that no test types as they are, each with the reason, which names what does the like, or says
 * that no test does.
 */
export const NOT_PLAYED: readonly (readonly [page: string, command: string, reason: string])[] = [
  ['docs/decentralized.md', 'godwit move', MOVE],
  ['docs/decentralized.md', 'kubectl get vmim ', MOVE],
  [
    'docs/evacuation.md',
    'godwit drain',
    'as a terminal shows it: src/cli/drain/drain-view.test.ts; docs/tutorials/drain.md plays it in a pipe',
  ],
  ['docs/guests.md', 'kubectl get vmi web', 'needs a guest with a port: test/vm/network.test.ts asks at it'],
  ['docs/kubernetes.md', 'kubectl -n shop create rolebinding', INSTALL],
  ['docs/kubernetes.md', 'godwit manifests', INSTALL],
  ['docs/kubernetes.md', 'for try in', INSTALL],
  ['docs/kubernetes.md', 'kubectl -n kubevirt rollout', INSTALL],
  ['docs/kubernetes.md', 'helm', INSTALL],
  ['docs/kubernetes.md', 'godwit token create', TUTORIAL],
  ['docs/kubernetes.md', 'kubectl label node', BESIDE],
  ['docs/kubernetes.md', 'kubectl get csr', BESIDE],
  ['docs/kubernetes.md', 'kubectl describe csr', BESIDE],
  ['docs/kubernetes.md', 'kubectl certificate approve', BESIDE],
  ['docs/kubernetes.md', 'node scripts/image.mjs', IMAGE],
  ['docs/kubernetes.md', 'buildah build', IMAGE],
  ['docs/kubernetes.md', 'docker buildx', 'no test: it needs Docker'],
  ['docs/operations.md', 'godwit down', RESTORE],
  ['docs/operations.md', 'cd ~/.godwit', RESTORE],
  ['docs/operations.md', 'cp -a ~/backups', RESTORE],
  ['docs/operations.md', 'godwit up', RESTORE],
  [
    'docs/operations.md',
    'kubectl -n kubevirt get kubevirt',
    'of nodes that are away after a restore: test/node/restored.test.ts',
  ],
  ['docs/operations.md', 'kubectl taint node', LOST],
  ['docs/operations.md', 'kubectl get vmi -A', LOST],
  ['docs/operations.md', 'kubectl delete node', LOST],
  ['docs/simulation.md', 'godwit simulate', SEEDS],
  ['docs/switchover.md', 'godwit reclaim', RECLAIM],
  ['docs/switchover.md', 'kubectl taint node', LOST],
  [ON_KUBERNETES, 'godwit manifests --image', INSTALL],
  [ON_KUBERNETES, 'kubectl -n kubevirt rollout', INSTALL],
  ['docs/trust.md', 'KUBECONFIG=', TRUST],
  ['docs/trust.md', 'kubectl -n kubevirt patch', 'of what is there once two clusters know each other: src/sync/trust'],
];
