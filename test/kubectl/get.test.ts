import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { Cluster, ROOT_CERTIFICATE } from '../support/cluster.ts';
import type { Kubectl } from '../support/kubectl.ts';
import { headersOf, tableOf, tablesOf } from './table.ts';
import { fillZoo } from './zoo.ts';

/** `kubectl get` in every form, and what it selects. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-get-'));
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace('get'));
  await fillZoo(cluster, namespace);
});
afterAll(async () => {
  await cluster.close();
  rmSync(directory, { recursive: true, force: true });
});

const lines = (text: string): string[] => text.trimEnd().split('\n');
const PODS = ['completed', 'crashing', 'failed', 'initializing', 'pending', 'running'];
const names = (text: string): (string | undefined)[] => tableOf(text).map((row) => row['NAME']);

describe('forms of output', () => {
  it('json and yaml, of one and of many', async () => {
    const one = await kubectl.json('get pod running');
    expect(one).toMatchObject({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'running', namespace },
      status: { phase: 'Running' },
    });
    expect(parse(await kubectl.ok('get pod running -o yaml'))).toEqual(one);
    const many = await kubectl.json('get pods');
    expect(many).toMatchObject({ apiVersion: 'v1', kind: 'List' });
    expect(many.items.map((pod: typeof one) => pod.metadata.name)).toEqual(PODS);
    expect(many.items.at(-1)).toEqual(one);
  });

  it('names', async () => {
    expect(lines(await kubectl.ok('get pods -o name'))).toEqual(PODS.map((name) => `pod/${name}`));
    expect(await kubectl.ok('get deploy -o name')).toBe('deployment.apps/web\n');
    expect(await kubectl.ok('get node zoo-node -o name')).toBe('node/zoo-node\n');
  });

  it('jsonpath, given here or in a file', async () => {
    const range = '{range .items[*]}{.metadata.name}={.status.phase}{"\\n"}{end}';
    expect(lines(await kubectl.ok(['get', 'pods', '-o', `jsonpath=${range}`]))).toContain('running=Running');
    expect(
      await kubectl.ok(['get', 'pod', 'running', '-o', 'jsonpath={.spec.containers[?(@.name=="side")].image}']),
    ).toBe('busybox:1');
    expect(await kubectl.ok(['get', 'pod', 'running', '-o', 'jsonpath={.spec.nothing}'])).toBe('');
    const path = join(directory, 'names.jsonpath');
    writeFileSync(path, '{.items[*].metadata.name}');
    expect(await kubectl.ok(['get', 'pods', '-o', `jsonpath-file=${path}`])).toBe(PODS.join(' '));
    expect(await kubectl.ok(['get', 'pod', 'running', '-o', 'jsonpath-as-json={.metadata.labels}'])).toBe(
      '[\n    {\n        "app": "web",\n        "tier": "front"\n    }\n]\n',
    );
  });

  it('go templates, given here or in a file', async () => {
    const template = '{{range .items}}{{.metadata.name}} {{len .spec.containers}};{{end}}';
    expect(await kubectl.ok(['get', 'pods', '-o', `go-template=${template}`])).toContain('running 2;');
    const path = join(directory, 'image.tmpl');
    writeFileSync(path, '{{range .spec.containers}}{{.image}}|{{end}}');
    expect(await kubectl.ok(['get', 'pod', 'running', '-o', `go-template-file=${path}`])).toBe('nginx:1.25|busybox:1|');
    expect(await kubectl.ok(['get', 'secret', 'secret', '--template={{.data.key | base64decode}}'])).toBe('value');
  });

  it('columns of one’s own, given here or in a file', async () => {
    const columns = 'NAME:.metadata.name,IMAGES:.spec.containers[*].image,NODE:.spec.nodeName';
    expect(tableOf(await kubectl.ok(['get', 'pods', '-o', `custom-columns=${columns}`]))).toEqual(
      expect.arrayContaining([
        { NAME: 'running', IMAGES: 'nginx:1.25,busybox:1', NODE: 'zoo-node' },
        { NAME: 'pending', IMAGES: 'postgres:16', NODE: '<none>' },
      ]),
    );
    const path = join(directory, 'columns.txt');
    writeFileSync(path, 'NAME           APP\nmetadata.name  metadata.labels.app\n');
    expect(tableOf(await kubectl.ok(['get', 'pods', '-o', `custom-columns-file=${path}`]))).toContainEqual({
      NAME: 'pending',
      APP: 'db',
    });
  });

  it('tables with labels, kinds, and without headers', async () => {
    const rows = tableOf(await kubectl.ok('get pods -L app,tier --show-labels --show-kind'));
    expect(rows).toContainEqual(
      expect.objectContaining({ NAME: 'pod/running', APP: 'web', TIER: 'front', LABELS: 'app=web,tier=front' }),
    );
    expect(rows).toContainEqual(
      expect.objectContaining({ NAME: 'pod/completed', APP: '', TIER: '', LABELS: '<none>' }),
    );
    const bare = lines(await kubectl.ok('get pods --no-headers'));
    expect(bare).toHaveLength(PODS.length);
    expect(bare[0]).toMatch(/^completed\s+0\/1\s+Completed\s+0\s+\S+$/);
  });

  it('tables of everywhere name the namespace', async () => {
    const text = await kubectl.ok('get deployments -A');
    expect(headersOf(text)[0]).toBe('NAMESPACE');
    expect(tableOf(text)).toContainEqual(expect.objectContaining({ NAMESPACE: namespace, NAME: 'web' }));
  });

  it('plain objects where the server is not to make a table', async () => {
    expect(headersOf(await kubectl.ok('get pods --server-print=false'))).toEqual(['NAME', 'AGE']);
  });

  it('refuses what is none', async () => {
    expect(await kubectl.fails('get pods -o nonsense')).toContain(
      'error: unable to match a printer suitable for the output format "nonsense"',
    );
    expect(await kubectl.fails(['get', 'pods', '-o', 'jsonpath={.items[}'])).toContain('error: error parsing jsonpath');
  });
});

describe('several at once', () => {
  it('of several kinds, each with its own table', async () => {
    const tables = tablesOf(await kubectl.ok('get pods,deploy,sts'));
    expect(tables.map((table) => table.map((row) => row['NAME']))).toEqual([
      PODS.map((name) => `pod/${name}`),
      ['deployment.apps/web'],
      ['statefulset.apps/db'],
    ]);
  });

  it('by kind and name', async () => {
    const tables = tablesOf(await kubectl.ok('get pod/running deployment/web pod/pending'));
    expect(tables.map((table) => table.map((row) => row['NAME']))).toEqual([
      ['pod/running'],
      ['deployment.apps/web'],
      ['pod/pending'],
    ]);
    expect(names(await kubectl.ok('get pods running pending'))).toEqual(['running', 'pending']);
    expect(names(await kubectl.ok('get pods/running'))).toEqual(['running']);
  });

  it('all of a category', async () => {
    const tables = tablesOf(await kubectl.ok('get all'));
    expect(tables.map((table) => table[0]?.['NAME'])).toEqual([
      'pod/completed',
      'replicationcontroller/old',
      'service/web',
      'daemonset.apps/agent',
      'deployment.apps/web',
      'replicaset.apps/web-1',
      'statefulset.apps/db',
      'cronjob.batch/nightly',
      'job.batch/once',
    ]);
  });

  it('from a file', async () => {
    const path = join(directory, 'some.yaml');
    writeFileSync(
      path,
      'apiVersion: v1\nkind: Pod\nmetadata: {name: running}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: gone}\n',
    );
    const { code, stdout, stderr } = await kubectl.run(['get', '-f', path]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'Error from server (NotFound): pods "gone" not found\n' });
    expect(names(stdout)).toEqual(['running']);
  });

  it('of which some are not there', async () => {
    const { code, stdout, stderr } = await kubectl.run(['get', 'pods', 'running', 'nobody']);
    expect(code).toBe(1);
    expect(names(stdout)).toEqual(['running']);
    expect(stderr).toBe('Error from server (NotFound): pods "nobody" not found\n');
    const ignored = await kubectl.run(['get', 'pods', 'running', 'nobody', '--ignore-not-found']);
    expect(ignored).toMatchObject({ code: 0, stderr: '' });
    expect(names(ignored.stdout)).toEqual(['running']);
    expect(await kubectl.run(['get', 'pod', 'nobody', '--ignore-not-found'])).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
  });
});

describe('what is not there', () => {
  it.each([
    ['get pods nobody', 'Error from server (NotFound): pods "nobody" not found\n'],
    ['get deployment nobody', 'Error from server (NotFound): deployments.apps "nobody" not found\n'],
    ['get nonsense', `error: the server doesn't have a resource type "nonsense"\n`],
    ['get pods,nonsense', `error: the server doesn't have a resource type "nonsense"\n`],
    ['get deployments.v9.apps', `error: the server doesn't have a resource type "deployments"\n`],
    ['get node zoo-node nobody', 'Error from server (NotFound): nodes "nobody" not found\n'],
    ['get ns nowhere', 'Error from server (NotFound): namespaces "nowhere" not found\n'],
    ['get pods running -A', 'error: a resource cannot be retrieved by name across all namespaces\n'],
  ])('%s', async (command, complaint) => {
    const { code, stderr } = await kubectl.run(command.split(' '));
    expect({ code, stderr }).toEqual({ code: 1, stderr: complaint });
  });

  it.each([
    ['get pods -n nowhere', 'No resources found in nowhere namespace.\n'],
    ['get csr', 'No resources found\n'],
    ['get pods -l app=nobody', 'No resources found in $NS namespace.\n'],
    ['get pods -A -l app=nobody', 'No resources found\n'],
  ])('%s is no failure', async (command, message) => {
    const { code, stdout, stderr } = await (command.includes('nowhere') ? cluster.kubectl : kubectl).run(
      command.split(' '),
    );
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: message.replace('$NS', namespace) });
  });

  it('takes a namespace with cluster-wide kinds for granted', async () => {
    expect(names(await cluster.kubectl.ok('get nodes -n nowhere'))).toEqual(['zoo-node']);
    const path = `/api/v1/namespaces/${namespace}/nodes`;
    expect(await kubectl.fails(['get', '--raw', path])).toBe(
      'Error from server (NotFound): the server could not find the requested resource\n',
    );
  });
});

describe('selection by label', () => {
  it.each([
    ['app=web', ['crashing', 'running']],
    ['app==web,tier=front', ['running']],
    ['app!=web', ['completed', 'failed', 'initializing', 'pending']],
    ['app in (web,db)', ['crashing', 'pending', 'running']],
    ['app notin (web,db)', ['completed', 'failed', 'initializing']],
    ['app', ['crashing', 'pending', 'running']],
    ['!app', ['completed', 'failed', 'initializing']],
    ['app,!tier', ['crashing', 'pending']],
  ])('%s', async (selector, expected) => {
    expect(names(await kubectl.ok(['get', 'pods', '-l', selector]))).toEqual(expected);
  });

  it('is refused where it is none', async () => {
    expect(await kubectl.fails(['get', 'pods', '-l', 'a b'])).toBe(
      `Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "a b", field selector "": unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt\n`,
    );
    expect(await kubectl.fails(['get', 'pods', 'running', '-l', 'app=web'])).toBe(
      'error: name cannot be provided when a selector is specified\n',
    );
  });
});

describe('selection by field', () => {
  it.each([
    ['pods', 'metadata.name=running', ['running']],
    ['pods', 'metadata.name!=running,status.phase=Running', ['crashing']],
    ['pods', 'spec.nodeName=zoo-node', ['crashing', 'initializing', 'running']],
    ['pods', 'spec.nodeName=', ['completed', 'failed', 'pending']],
    ['pods', 'status.phase==Pending', ['initializing', 'pending']],
    ['pods', 'spec.restartPolicy=Never', ['completed', 'failed']],
    ['pods', 'spec.serviceAccountName=robot', ['running']],
    ['pods', 'status.podIP=10.1.0.7', ['running']],
    ['secrets', 'type=Opaque', ['secret']],
    ['secrets', 'type=kubernetes.io/tls', []],
    ['nodes', 'spec.unschedulable=true', ['zoo-node']],
    ['nodes', 'spec.unschedulable=false', []],
    ['jobs', 'status.successful=0', ['once']],
    ['replicationcontrollers', 'status.replicas=0', ['old']],
    ['namespaces', 'metadata.name=default', ['default']],
  ])('%s %s', async (kind, selector, expected) => {
    expect(names(await kubectl.ok(['get', kind, '--field-selector', selector]))).toEqual(expected);
  });

  it('of events, by what they are about', async () => {
    const about = async (selector: string): Promise<string[]> =>
      lines(await kubectl.ok(['get', 'events', '-o', 'name', '--field-selector', selector]));
    expect(await about('involvedObject.name=running')).toEqual(['event/running.1']);
    expect(await about('type=Warning,involvedObject.kind=Pod')).toEqual(['event/crashing.1']);
    expect(await about('reason!=BackOff,involvedObject.kind=Pod')).toEqual(['event/running.1']);
  });

  it.each([
    ['pods', 'spec.bogus=x', 'field label not supported: spec.bogus'],
    ['configmaps', 'data=x', '"data" is not a known field selector: only "metadata.name", "metadata.namespace"'],
    ['pods', 'x', "invalid selector: 'x'; can't understand 'x'"],
  ])('%s %s is refused', async (kind, selector, complaint) => {
    expect(await kubectl.fails(['get', kind, '--field-selector', selector])).toBe(
      `Error from server (BadRequest): Unable to find "/v1, Resource=${kind}" that match label selector "", field selector "${selector}": ${complaint}\n`,
    );
  });
});

describe('order', () => {
  it('is by name, or by any field', async () => {
    expect(names(await kubectl.ok('get pods --sort-by=.metadata.name'))).toEqual(PODS);
    expect(names(await kubectl.ok('get pods -l app=web --sort-by=.status.containerStatuses[0].restartCount'))).toEqual([
      'running',
      'crashing',
    ]);
    const created = lines(await kubectl.ok('get pods --sort-by=.metadata.creationTimestamp -o name'));
    expect(created).toHaveLength(PODS.length);
    expect((await kubectl.json('get configmaps,secrets --sort-by={.kind}')).items[0].kind).toBe('ConfigMap');
  });
});

describe('pages', () => {
  const ours = Array.from({ length: 22 }, (_, index) => `page-${String(index).padStart(2, '0')}`);
  const all = [ROOT_CERTIFICATE, ...ours];
  let paged: Kubectl;
  let pagedNamespace: string;
  beforeAll(async () => {
    ({ kubectl: paged, namespace: pagedNamespace } = await cluster.namespace('paged'));
    const items = ours.map((name) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }));
    await paged.ok('create -f -', { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });
  });

  it.each([0, 1, 5, 22, 23, 24, 500])('of %i make the same list', async (size) => {
    const found = names(await paged.ok(['get', 'configmaps', `--chunk-size=${size}`]));
    expect(found).toEqual(all);
  });

  it('are asked for one after the other, each as of the first', async () => {
    const path = `/api/v1/namespaces/${pagedNamespace}/configmaps`;
    const first = await cluster.get(`${path}?limit=10`);
    expect(first.items).toHaveLength(10);
    expect(first.metadata.remainingItemCount).toBe(all.length - 10);
    // What happens between two pages is not seen in the second: all of them show one moment.
    await paged.ok('create configmap page-10-and-a-half');
    await paged.ok('delete configmap page-15');
    const second = await cluster.get(`${path}?limit=10&continue=${encodeURIComponent(first.metadata.continue)}`);
    expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    const third = await cluster.get(`${path}?limit=10&continue=${encodeURIComponent(second.metadata.continue)}`);
    expect(third.metadata.continue ?? '').toBe('');
    const found = [...first.items, ...second.items, ...third.items].map((item) => item.metadata.name);
    expect(found).toEqual(all);
    const now = names(await paged.ok('get configmaps --chunk-size=7'));
    expect(now).toContain('page-10-and-a-half');
    expect(now).not.toContain('page-15');
  });
});

describe('subresources', () => {
  it('are read by their own name', async () => {
    expect(await kubectl.json('get deployment web --subresource=scale')).toMatchObject({
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'web', namespace },
      spec: { replicas: 2 },
      status: { replicas: 0, selector: 'app=web' },
    });
    expect((await kubectl.json('get pod running --subresource=status')).status.phase).toBe('Running');
    expect(tableOf(await kubectl.ok('get deployment web --subresource=scale'))).toMatchObject([
      { NAME: 'web', DESIRED: '2', AVAILABLE: '0' },
    ]);
    expect(tableOf(await kubectl.ok('get pod running --subresource=status'))).toMatchObject([
      { NAME: 'running', READY: '1/2', STATUS: 'Running' },
    ]);
  });

  it('are only those that the kind has', async () => {
    expect(await kubectl.fails('get configmap settings --subresource=status')).toBe(
      'Error from server (NotFound): the server could not find the requested resource\n',
    );
  });
});
