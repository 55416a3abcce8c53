import {
  get,
  type Group,
  onNode,
  mergePatch,
  post,
  put,
  refused,
  remove,
  silently,
  strategicPatch,
  without,
} from '../request.ts';

const PODS = '/api/v1/namespaces/$ns/pods';
const BUDGETS = '/apis/policy/v1/namespaces/$ns/poddisruptionbudgets';
const POD_NAMES = ['one', 'two', 'three', 'free'];
const eviction = (name: string, more: object = {}): object => ({
  apiVersion: 'policy/v1',
  kind: 'Eviction',
  metadata: { name, namespace: '$ns' },
  ...more,
});
const running = {
  phase: 'Running',
  conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2001-01-01T00:00:00Z' }],
};
/** What the controller of budgets writes, where one runs, comes out the same. */
const counted = (allowed: number): object => ({
  status: {
    observedGeneration: 1,
    disruptionsAllowed: allowed,
    currentHealthy: 3,
    desiredHealthy: 3 - allowed,
    expectedPods: 3,
  },
});
const evict = (name: string, pod: string, more?: object, query = ''): ReturnType<typeof post> =>
  post(name, `${PODS}/${pod}/eviction${query}`, eviction(pod, more));
const untilCounted = (allowed: number): object => ({
  until: ({ body }: { body: { status?: { disruptionsAllowed?: number } } }) =>
    body.status?.disruptionsAllowed === allowed,
});

export const EVICTIONS: Group = {
  name: 'evictions',
  requests: onNode([
    ...POD_NAMES.flatMap((name) => [
      silently(
        post(
          `makes ${name}`,
          PODS,
          {
            metadata: { name, labels: { app: name === 'free' ? 'free' : 'web' } },
            spec: {
              nodeName: '$ns',
              schedulerName: 'nobody',
              automountServiceAccountToken: false,
              containers: [{ name: 'main', image: 'example.org/main:1' }],
            },
          },
          { save: name },
        ),
      ),
      silently(strategicPatch(`lets ${name} run`, `${PODS}/${name}/status`, { status: running })),
    ]),
    post(
      'makes a budget',
      BUDGETS,
      { metadata: { name: 'web' }, spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } } },
      { view: ({ metadata, spec }) => ({ metadata: without(metadata, 'managedFields'), spec }) },
    ),
    // Without owners of the pods, a controller can count only what is asked for in numbers.
    silently(mergePatch('counts', `${BUDGETS}/web/status`, counted(1))),
    silently(get('waits for the count', `${BUDGETS}/web`, untilCounted(1))),
    evict('rehearses', 'one', undefined, '?dryRun=All'),
    evict('rehearses in the body', 'one', { deleteOptions: { dryRun: ['All'] } }),
    evict('evicts', 'one'),
    { ...evict('evicts once too often', 'two'), refused: 429 },
    {
      ...evict('evicts with another uid', 'one', {
        deleteOptions: { preconditions: { uid: '11111111-2222-3333-4444-555555555555' } },
      }),
      refused: 409,
    },
    evict('evicts what is being deleted', 'one'),
    { ...evict('rehearses what is refused', 'two', undefined, '?dryRun=All'), refused: 429 },
    evict('evicts what has no budget with a grace', 'free', { deleteOptions: { gracePeriodSeconds: 1 } }),
    get('gets what goes with a grace', `${PODS}/free`, {
      view: ({ metadata: { deletionGracePeriodSeconds } }) => deletionGracePeriodSeconds,
    }),
    { ...evict('evicts what is not there', 'nothing'), refused: 404 },
    refused(400).post('evicts another', `${PODS}/two/eviction`, eviction('three')),
    refused(400).post('evicts with another kind', `${PODS}/two/eviction`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'two' },
    }),
    refused(429).post('evicts with an old version', `${PODS}/two/eviction`, {
      ...eviction('two'),
      apiVersion: 'policy/v1beta1',
    }),
    refused(400).post('evicts without a body', `${PODS}/two/eviction`),
    refused(400).post('evicts with an empty body', `${PODS}/two/eviction`, {}),
    refused(405).get('gets an eviction', `${PODS}/two/eviction`),
    strategicPatch(
      'one is finished',
      `${PODS}/three/status`,
      { status: { phase: 'Succeeded' } },
      { view: ({ status: { phase } }) => phase },
    ),
    evict('evicts what is finished', 'three'),
    silently(
      post('makes a second budget', BUDGETS, {
        metadata: { name: 'web-2' },
        spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'web' } } },
      }),
    ),
    { ...evict('evicts with two budgets', 'two'), refused: 500 },
    get('a budget', `${BUDGETS}/web-2`, { view: ({ spec }) => spec }),
    get('a budget as a table', `${BUDGETS}/web-2`, {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
      view: ({ columnDefinitions, rows }) => [columnDefinitions, rows[0].cells.slice(0, 3)],
    }),
    refused(422).post('makes a budget of both kinds', BUDGETS, {
      metadata: { name: 'bad' },
      spec: { minAvailable: 1, maxUnavailable: 1 },
    }),
    refused(422).post('makes a budget of a bad share', BUDGETS, {
      metadata: { name: 'bad' },
      spec: { minAvailable: '110%' },
    }),
    refused(422).post('makes a budget of a bad text', BUDGETS, {
      metadata: { name: 'bad' },
      spec: { minAvailable: 'many' },
    }),
    refused(422).post('makes a budget of a negative number', BUDGETS, {
      metadata: { name: 'bad' },
      spec: { maxUnavailable: -1 },
    }),
    refused(422).post('makes a budget with a bad selector', BUDGETS, {
      metadata: { name: 'bad' },
      spec: { selector: { matchExpressions: [{ key: 'a', operator: 'Odd' }] } },
    }),
    refused(422).post('makes a budget with a bad policy', BUDGETS, {
      metadata: { name: 'bad' },
      spec: { unhealthyPodEvictionPolicy: 'Odd' },
    }),
    post('makes an empty budget', BUDGETS, { metadata: { name: 'empty' } }, { view: ({ spec }) => spec ?? 'none' }),
    refused(422).put('replaces a budget of any version', `${BUDGETS}/empty`, {
      metadata: { name: 'empty' },
      spec: { maxUnavailable: '50%' },
    }),
    // Its controller writes to it, too: once, where nothing is asked for.
    silently(
      get('waits until it is counted', `${BUDGETS}/empty`, {
        save: 'empty',
        until: ({ body }) => body.status?.observedGeneration === 1,
      }),
    ),
    put(
      'replaces a budget',
      `${BUDGETS}/empty`,
      {
        metadata: { name: 'empty', resourceVersion: '{{empty.metadata.resourceVersion}}' },
        spec: { maxUnavailable: '50%' },
      },
      { view: ({ spec, metadata: { generation } }) => [spec, generation] },
    ),
    refused(422).mergePatch('makes a status bad', `${BUDGETS}/empty/status`, {
      status: { disruptionsAllowed: -1, currentHealthy: -1 },
    }),
    remove('deletes all budgets', BUDGETS, undefined, { view: ({ kind }) => kind }),
  ]),
};
