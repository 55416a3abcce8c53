/** Which pages tests play, and what no test types. `test/tidy/documentation.test.ts` sees that nothing is forgotten. */

/** Played on one cluster of three nodes, one after another; each leaves it as it found it. */
export const ON_ONE_CLUSTER = [
  'docs/tutorials/first-vm.md',
  'docs/tutorials/drain.md',
  'docs/tutorials/policies.md',
  'docs/tutorials/priorities.md',
  'docs/tutorials/another-machine.md',
] as const;

/** Starts two clusters itself. */
export const ON_TWO_CLUSTERS = 'docs/tutorials/another-cluster.md';

/** Played on a Kubernetes control plane, by `npm run test:kubernetes`. */
export const ON_KUBERNETES = 'docs/tutorials/kubernetes.md';

/** Played on a cluster without nodes. */
export const WITHOUT_NODES = ['docs/guests.md', 'docs/trust.md', 'docs/updates.md'] as const;

/** Played by a newcomer who has cloned the repository: the section `Start`. */
export const BY_A_NEWCOMER = 'README.md';

const DRAIN = 'an illustration: the tutorial drain.md plays it';
const PAIR = 'an illustration: the tutorial another-cluster.md plays a move, test/decentralized tries every other kind';
const SYMPTOM =
  'of trouble that tests make one at a time: test/cli/understanding.test.ts, test/eviction/drain.test.ts, test/sync';
const RESTORE = 'test/vm/restore.test.ts does it with directories of its own';
const DEPLOYMENTS = 'needs kubelets and an image registry; test/kubernetes/install does it where hosts are played';
const LOST = 'needs a host that is lost for good; test/vm and test/decentralized lose one';

/** Commands that are shown and that no test types as they are, each with the reason; `*` for all of a page. */
export const NOT_PLAYED: readonly (readonly [page: string, command: string, reason: string])[] = [
  ['docs/commands.md', '*', "the commands' own help; that each names what there is is tested with all other commands"],
  ['docs/decentralized.md', '*', PAIR],
  ['docs/evacuation.md', '*', DRAIN],
  ['docs/eviction.md', '*', DRAIN],
  ['docs/guests.md', 'kubectl get vmi web', 'the port is another each time; test/vm asks at it'],
  ['docs/kubernetes.md', '*', DEPLOYMENTS],
  ['docs/metrics.md', '*', 'test/monitoring/scrape.test.ts types it, and reads the metrics with that token'],
  ['docs/migration.md', '*', 'an illustration: the tutorial first-vm.md plays it'],
  ['docs/nodes.md', '*', 'an illustration with an address of its own: the tutorial another-machine.md plays it'],
  ['docs/operations.md', 'godwit backup', RESTORE],
  ['docs/operations.md', 'godwit down', RESTORE],
  ['docs/operations.md', 'cd ~/.godwit', RESTORE],
  ['docs/operations.md', 'cp -a /backups', RESTORE],
  ['docs/operations.md', 'godwit up', RESTORE],
  ['docs/operations.md', 'kubectl taint node', LOST],
  ['docs/operations.md', 'kubectl delete node', LOST],
  ['docs/operations.md', 'kubectl get', SYMPTOM],
  ['docs/operations.md', 'kubectl describe', SYMPTOM],
  ['docs/operations.md', 'kubectl -n kubevirt get', SYMPTOM],
  ['docs/operations.md', 'godwit why', SYMPTOM],
  ['docs/operations.md', 'godwit queue', SYMPTOM],
  ['docs/operations.md', 'godwit drain', SYMPTOM],
  ['docs/operations.md', 'godwit trust list', SYMPTOM],
  ['docs/simulation.md', '*', 'takes minutes; test/cli/simulate.test.ts runs it for less'],
  ['docs/switchover.md', '*', LOST],
  [ON_KUBERNETES, 'godwit manifests --image', DEPLOYMENTS],
  [ON_KUBERNETES, 'kubectl -n kubevirt rollout', DEPLOYMENTS],
  ['docs/trust.md', 'KUBECONFIG=', 'the tutorial another-cluster.md plays it'],
  [
    'docs/trust.md',
    'kubectl -n kubevirt patch',
    'of what is there once two clusters know each other; test/sync changes it',
  ],
];
