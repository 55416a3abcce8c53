/** What a page about one topic takes for granted: commands that are typed before it is played, and after. All have to go well. */
export interface Scene {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

const piped = (verb: 'apply' | 'create', manifest: object): string =>
  `kubectl ${verb} -f - <<'END'\n${JSON.stringify(manifest)}\nEND`;
const configure = (type: 'merge' | 'json', patch: object): string =>
  `kubectl -n kubevirt patch kubevirt kubevirt --type ${type} -p '${JSON.stringify(patch)}'`;

/** All that is applied starts on the one node that takes pods, so that pages can name it. */
const onNode1 = (...files: readonly string[]): string[] => [
  'kubectl cordon node-2 node-3',
  `kubectl apply ${files.map((file) => `-f examples/${file}`).join(' ')}`,
  'kubectl wait vm --all --for condition=Ready --timeout 2m',
  'kubectl uncordon node-2 node-3',
];

/** Three machines on node-1. */
export const SHOP: Scene = {
  before: onNode1('shop.yaml'),
  after: ['kubectl uncordon node-1', 'kubectl delete -f examples/shop.yaml'],
};

/** One that cannot move, on a node that is to be emptied. */
export const BLOCKED: Scene = {
  before: [...onNode1('vm-local-disk.yaml'), 'kubectl cordon node-1'],
  after: ['kubectl uncordon node-1', 'kubectl delete -f examples/vm-local-disk.yaml'],
};

const LARGE = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'large' },
  spec: { runStrategy: 'Always', template: { spec: { domain: { memory: { guest: '900Gi' }, devices: {} } } } },
};
/** Fails at once, where no node has such labels. */
const NOWHERE = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceMigration',
  metadata: { name: 'move-web', annotations: { 'kubevirt.io/migrationUnschedulablePodTimeoutSeconds': '1' } },
  spec: { vmiName: 'web', addedNodeSelector: { zone: 'nowhere' } },
};
const FAILED = "--for jsonpath='{.status.phase}'=Failed";

/** All that an admin could be woken up for, at once: what does not start, does not move, does not leave, and is not heard of. */
export const TROUBLE: Scene = {
  before: [
    ...onNode1('shop.yaml', 'vm-local-disk.yaml'),
    piped('create', NOWHERE),
    `kubectl wait vmim move-web ${FAILED} --timeout 2m`,
    configure('merge', { spec: { configuration: { migrations: { parallelMigrationsPerCluster: 0 } } } }),
    'godwit migrate db',
    piped('apply', LARGE),
    piped('apply', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'rack-7' } }),
    'kubectl cordon node-1',
  ],
  after: [
    'godwit migrate-cancel db',
    configure('json', [{ op: 'remove', path: '/spec/configuration/migrations' }]),
    'kubectl uncordon node-1',
    'kubectl delete node rack-7',
    'kubectl delete vm large',
    'kubectl delete -f examples/shop.yaml -f examples/vm-local-disk.yaml',
  ],
};
