import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Anything } from '../support/api.ts';
import { Cluster } from '../support/cluster.ts';
import { itSince, type Kubectl, kubectlHas } from '../support/kubectl.ts';
import { TestKubelet } from '../support/kubelet.ts';
import { configMap, deployment, simpleCrd } from './manifests.ts';

/** `kubectl delete` in all its ways, and `kubectl wait`. Kubelets come in later work: the test plays their part. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace());
});
afterAll(() => cluster.close());

const path = (resource: string, name: string): string =>
  resource === 'deployments'
    ? `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`
    : `/api/v1/namespaces/${namespace}/${resource}/${name}`;

const UNHELD = '{"metadata":{"finalizers":null}}';

describe('delete', () => {
  itSince(28, 'deletes by name, by kind and name, by file and by label', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await kubectl.apply(configMap(name, {}, name > 'c' ? { some: 'label' } : {}));
    }
    expect(await kubectl.ok('delete configmap a')).toBe('configmap "a" deleted\n');
    expect(await kubectl.ok('delete configmap/b configmap/c')).toBe('configmap "b" deleted\nconfigmap "c" deleted\n');
    expect(await kubectl.ok('delete configmaps -l some=label')).toBe('configmap "d" deleted\nconfigmap "e" deleted\n');
    expect(await kubectl.run(['delete', 'configmaps', '-l', 'some=label'])).toEqual({
      code: 0,
      stdout: 'No resources found\n',
      stderr: '',
    });
    expect(await kubectl.fails('delete configmap a')).toBe('Error from server (NotFound): configmaps "a" not found\n');
    expect(await kubectl.ok('delete configmap a --ignore-not-found')).toBe('');

    const file = join(mkdtempSync(join(tmpdir(), 'godwit-delete-')), 'both.json');
    const both = { apiVersion: 'v1', kind: 'List', items: [configMap('x', {}), configMap('y', {})] };
    writeFileSync(file, JSON.stringify(both));
    await kubectl.apply(both);
    expect(await kubectl.ok(['delete', '-f', file])).toBe('configmap "x" deleted\nconfigmap "y" deleted\n');
    expect(await kubectl.fails(['delete', '-f', file])).toContain('Error from server (NotFound): error when deleting');
  });

  it('deletes all of a kind, and rehearses', async () => {
    const all = await cluster.namespace('all');
    for (const name of ['a', 'b', 'c']) await all.kubectl.ok(`create secret generic ${name}`);
    expect(await all.kubectl.ok('delete secrets --all --dry-run=server')).toBe(
      'secret "a" deleted (server dry run)\nsecret "b" deleted (server dry run)\nsecret "c" deleted (server dry run)\n',
    );
    expect(await all.kubectl.ok('get secrets -o name')).toBe('secret/a\nsecret/b\nsecret/c\n');
    expect(await all.kubectl.ok('delete secrets --all')).toBe(
      'secret "a" deleted\nsecret "b" deleted\nsecret "c" deleted\n',
    );
    expect(await all.kubectl.ok('get secrets -o name')).toBe('');
  });

  it('deletes a collection by raw request', async () => {
    for (const name of ['r1', 'r2', 'r3'])
      await kubectl.apply(configMap(name, {}, { raw: name === 'r3' ? 'no' : 'yes' }));
    const answer = await kubectl.ok([
      'delete',
      '--raw',
      `/api/v1/namespaces/${namespace}/configmaps?labelSelector=raw%3Dyes`,
    ]);
    expect(JSON.parse(answer)).toMatchObject({
      kind: 'ConfigMapList',
      items: [{ metadata: { name: 'r1' } }, { metadata: { name: 'r2' } }],
    });
    expect(await kubectl.ok('get configmaps -l raw -o name')).toBe('configmap/r3\n');
  });

  it('waits for finalizers, and goes when the last of them does', async () => {
    const manifest = configMap('held', { a: '1' });
    manifest.metadata.finalizers = ['example.com/one', 'example.com/two'];
    await kubectl.apply(manifest);
    const deletion = kubectl.start(['delete', 'configmap', 'held']);
    await expect.poll(deletion.output, { timeout: 20_000 }).toBe('configmap "held" deleted\n');
    const held = await kubectl.json('get configmap held');
    expect(held.metadata.deletionTimestamp).toBeDefined();
    expect(held.metadata.deletionGracePeriodSeconds).toBe(0);
    expect(
      await kubectl.fails([
        'patch',
        'configmap',
        'held',
        '--type=json',
        '-p',
        '[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/three"}]',
      ]),
    ).toBe(
      'The ConfigMap "held" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/three"}\n',
    );
    await kubectl.ok([
      'patch',
      'configmap',
      'held',
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":["example.com/two"]}}',
    ]);
    expect((await kubectl.json('get configmap held')).metadata.finalizers).toEqual(['example.com/two']);
    await kubectl.ok(['patch', 'configmap', 'held', '--type=merge', '-p', '{"metadata":{"finalizers":null}}']);
    expect(await deletion.ended).toBe(0);
    expect(await kubectl.fails('get configmap held')).toContain('NotFound');
  });

  it('does not wait when told not to, and gives up when told how long', async () => {
    const manifest = configMap('stuck', {});
    manifest.metadata.finalizers = ['example.com/stuck'];
    await kubectl.apply(manifest);
    expect(await kubectl.ok('delete configmap stuck --wait=false')).toBe('configmap "stuck" deleted\n');
    expect(await kubectl.run(['delete', 'configmap', 'stuck', '--timeout=1s'])).toEqual({
      code: 1,
      stdout: 'configmap "stuck" deleted\n',
      stderr: 'error: timed out waiting for the condition on configmaps/stuck\n',
    });
    await kubectl.ok(['patch', 'configmap', 'stuck', '--type=merge', '-p', '{"metadata":{"finalizers":[]}}']);
    expect(await kubectl.fails('get configmap stuck')).toContain('NotFound');
  });

  itSince(28, 'ends a namespace with all that is in it', async () => {
    await kubectl.ok('create namespace leaving');
    const held = configMap('held', {});
    held.metadata.finalizers = ['example.com/hold'];
    await kubectl.inNamespace('leaving').apply(held);
    expect(await kubectl.ok('delete namespace leaving --wait=false')).toBe('namespace "leaving" deleted\n');
    expect((await kubectl.ok('get namespace leaving --no-headers')).split(/\s+/).slice(0, 2)).toEqual([
      'leaving',
      'Terminating',
    ]);
    expect(await kubectl.fails('create configmap late -n leaving')).toBe(
      'error: failed to create configmap: configmaps "late" is forbidden: unable to create new content in namespace leaving because it is being terminated\n',
    );
    await kubectl.ok('wait namespace leaving --for=condition=NamespaceFinalizersRemaining --timeout=20s');
    const deletion = kubectl.start(['delete', 'namespace', 'leaving']);
    // It also warns that a namespace is in none.
    await expect.poll(deletion.output, { timeout: 20_000 }).toContain('namespace "leaving" deleted\n');
    await kubectl.ok(['patch', 'configmap', 'held', '-n', 'leaving', '--type=merge', '-p', UNHELD]);
    expect(await deletion.ended).toBe(0);
    expect(await kubectl.fails('get namespace leaving')).toContain('NotFound');
    expect(await cluster.kubectl.fails('delete namespace default')).toBe(
      'Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted\n',
    );
  });

  itSince(28, 'asks first where it is to be careful', async () => {
    await kubectl.apply(configMap('careful', {}));
    expect(await kubectl.ok('delete configmap careful --interactive', { stdin: 'n\n' })).toContain(
      'deletion is cancelled',
    );
    expect(await kubectl.ok('delete configmap careful --interactive', { stdin: 'y\n' })).toContain(
      'configmap "careful" deleted',
    );
  });
});

describe('cascades', () => {
  const owned = (owner: Anything): Anything => ({
    ...configMap(`${owner.metadata.name}-child`, {}),
    metadata: {
      name: `${owner.metadata.name}-child`,
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          name: owner.metadata.name,
          uid: owner.metadata.uid,
          blockOwnerDeletion: true,
        },
      ],
    },
  });

  /** A deployment and what it owns, which somebody may hold. */
  async function family(name: string, ...finalizers: string[]): Promise<void> {
    await kubectl.apply(deployment(name));
    const child = owned(await kubectl.json(`get deployment ${name}`));
    child.metadata.finalizers = finalizers;
    await kubectl.apply(child);
  }

  it('in the background: the owner goes at once, its dependents soon after', async () => {
    await family('background');
    expect(await kubectl.ok('delete deployment background --cascade=background')).toBe(
      'deployment.apps "background" deleted\n',
    );
    expect(await kubectl.fails('get deployment background')).toContain('NotFound');
    await kubectl.ok('wait configmap background-child --for=delete --timeout=20s');
  });

  it('in the foreground: the owner stays until its dependents are gone', async () => {
    await family('foreground', 'example.com/hold');
    const deletion = kubectl.start(['delete', 'deployment', 'foreground', '--cascade=foreground']);
    await expect.poll(deletion.output, { timeout: 20_000 }).toBe('deployment.apps "foreground" deleted\n');
    const { metadata } = await kubectl.json('get deployment foreground');
    expect(metadata.finalizers).toEqual(['foregroundDeletion']);
    expect(metadata.deletionTimestamp).toBeDefined();
    await kubectl.ok(['patch', 'configmap', 'foreground-child', '--type=merge', '-p', UNHELD]);
    expect(await deletion.ended).toBe(0);
    expect(await kubectl.fails('get configmap foreground-child')).toContain('NotFound');
    expect(await kubectl.fails('get deployment foreground')).toContain('NotFound');
  });

  it('as orphans: the dependents are let go first, and stay', async () => {
    await family('orphaning');
    expect(await kubectl.ok('delete deployment orphaning --cascade=orphan')).toBe(
      'deployment.apps "orphaning" deleted\n',
    );
    expect((await kubectl.json('get configmap orphaning-child')).metadata.ownerReferences).toBeUndefined();
  });

  it('changes its mind about a deletion under way', async () => {
    await family('wavering', 'example.com/hold');
    await kubectl.ok('delete deployment wavering --cascade=foreground --wait=false');
    expect((await kubectl.json('get deployment wavering')).metadata.finalizers).toEqual(['foregroundDeletion']);
    await kubectl.ok('delete deployment wavering --cascade=background --wait=false');
    expect(await kubectl.fails('get deployment wavering')).toContain('NotFound');
    await kubectl.ok(['patch', 'configmap', 'wavering-child', '--type=merge', '-p', UNHELD]);
  });
});

describe('pods', () => {
  const pod = (name: string, spec: object = {}): Anything => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { nodeName: 'somewhere', containers: [{ name: 'main', image: 'main' }], ...spec },
  });

  it('are given their time, and are gone when the kubelet says so', async () => {
    await kubectl.apply(pod('graceful', { terminationGracePeriodSeconds: 600 }));
    const kubelet = new TestKubelet(cluster, namespace);
    const deletion = kubectl.start(['delete', 'pod', 'graceful']);
    await expect.poll(deletion.output, { timeout: 20_000 }).toBe('pod "graceful" deleted\n');
    const { metadata } = await kubectl.json('get pod graceful');
    expect(metadata.deletionGracePeriodSeconds).toBe(600);
    expect(await kubectl.ok('get pod graceful --no-headers')).toMatch(/^graceful +0\/1 +Terminating /);
    // A second request may shorten the time, never lengthen it. All of them are far longer than the commands take.
    await kubectl.ok('delete pod graceful --grace-period=900 --wait=false');
    expect((await kubectl.json('get pod graceful')).metadata).toMatchObject({
      deletionGracePeriodSeconds: 600,
      deletionTimestamp: metadata.deletionTimestamp,
    });
    await kubectl.ok('delete pod graceful --grace-period=3 --wait=false');
    const shortened = (await kubectl.json('get pod graceful')).metadata;
    expect(shortened.deletionGracePeriodSeconds).toBe(3);
    expect(Date.parse(shortened.deletionTimestamp)).toBeLessThan(Date.parse(metadata.deletionTimestamp));
    await kubelet.start();
    expect(await deletion.ended).toBe(0);
    await kubelet.stop();
  });

  itSince(28, 'are gone at once when forced', async () => {
    await kubectl.apply(pod('forced'));
    const result = await kubectl.run(['delete', 'pod', 'forced', '--grace-period=0', '--force']);
    expect(result).toEqual({
      code: 0,
      stdout: 'pod "forced" force deleted\n',
      stderr:
        'Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.\n',
    });
    expect(await kubectl.fails('get pod forced')).toContain('NotFound');
  });

  it('are given a second now, and none before they have a node or after their end', async () => {
    await kubectl.apply(pod('hurried'));
    await kubectl.ok('delete pod hurried --now --wait=false');
    expect((await kubectl.json('get pod hurried')).metadata.deletionGracePeriodSeconds).toBe(1);
    await kubectl.ok('delete pod hurried --grace-period=0 --force');

    await kubectl.apply(pod('unscheduled', { nodeName: undefined }));
    await kubectl.ok('delete pod unscheduled --wait=false');
    expect(await kubectl.fails('get pod unscheduled')).toContain('NotFound');

    await kubectl.apply(pod('finished'));
    await cluster.merge(`${path('pods', 'finished')}/status`, { status: { phase: 'Succeeded' } });
    await kubectl.ok('delete pod finished --wait=false');
    expect(await kubectl.fails('get pod finished')).toContain('NotFound');
  });
});

describe('wait', () => {
  it('waits for a condition', async () => {
    await kubectl.apply(deployment('awaited'));
    const waiting = kubectl.start(['wait', '--for=condition=Available', 'deployment/awaited', '--timeout=20s']);
    const condition = (status: string): Promise<Anything> =>
      cluster.merge(`${path('deployments', 'awaited')}/status`, {
        status: { conditions: [{ type: 'Available', status, reason: 'Test', message: 'by the test' }] },
      });
    await condition('False');
    await condition('True');
    expect(await waiting.ended).toBe(0);
    expect(waiting.output()).toBe('deployment.apps/awaited condition met\n');
    expect(await kubectl.ok('wait --for=condition=available=true deployment awaited')).toBe(
      'deployment.apps/awaited condition met\n',
    );
    expect(await kubectl.run(['wait', '--for=condition=Progressing', 'deployment/awaited', '--timeout=1s'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: timed out waiting for the condition on deployments/awaited\n',
    });
  });

  itSince(28, 'waits for a value', async () => {
    await kubectl.apply(configMap('valued', { phase: 'early' }));
    const waiting = kubectl.start(['wait', '--for=jsonpath={.data.phase}=late', 'configmap/valued', '--timeout=20s']);
    await kubectl.ok(['patch', 'configmap', 'valued', '-p', '{"data":{"phase":"late"}}']);
    expect(await waiting.ended).toBe(0);
    expect(waiting.output()).toBe('configmap/valued condition met\n');
    expect(await kubectl.fails('wait --for=jsonpath={.data.phase}=never configmap/valued --timeout=1s')).toBe(
      'error: timed out waiting for the condition on configmaps/valued\n',
    );
    if (kubectlHas(31, 'wait for any value of a path')) {
      expect(await kubectl.ok('wait --for=jsonpath={.data.phase} configmap/valued')).toBe(
        'configmap/valued condition met\n',
      );
    }
  });

  itSince(28, 'waits for a deletion', async () => {
    await kubectl.apply(configMap('parting', {}, { part: 'yes' }));
    const waiting = kubectl.start(['wait', '--for=delete', 'configmap', '-l', 'part=yes', '--timeout=20s']);
    // The wait has begun when it is seen by the server; only then is there something to miss.
    await kubectl.ok('delete configmap parting');
    expect(await waiting.ended).toBe(0);
    expect(await kubectl.ok('wait --for=delete configmap/parting')).toBe('');
    await kubectl.apply(configMap('parting', {}));
    expect(await kubectl.fails('wait --for=delete configmap/parting --timeout=1s')).toBe(
      'error: timed out waiting for the condition on configmaps/parting\n',
    );
  });

  it('waits for a creation', async () => {
    if (!kubectlHas(31, 'wait for a creation')) return;
    const waiting = kubectl.start(['wait', '--for=create', 'configmap/expected', '--timeout=20s']);
    await kubectl.apply(configMap('expected', {}));
    expect(await waiting.ended).toBe(0);
    expect(waiting.output()).toBe('configmap/expected condition met\n');
    expect(await kubectl.fails('wait --for=create configmap/never --timeout=1s')).toBe(
      'error: timed out waiting for the condition\n',
    );
  });

  it('says what is not there', async () => {
    expect(await kubectl.fails('wait --for=condition=Ready pod/none')).toBe(
      'Error from server (NotFound): pods "none" not found\n',
    );
    expect(await kubectl.fails('wait --for=condition=Ready pods --all')).toBe('error: no matching resources found\n');
  });

  itSince(28, 'waits for custom resources by their conditions', async () => {
    await kubectl.apply(simpleCrd('tasks', 'Task'));
    expect(await kubectl.ok('wait --for=condition=Established --all crd')).toContain(
      'customresourcedefinition.apiextensions.k8s.io/tasks.test.example.com condition met\n',
    );
    await kubectl.apply({
      apiVersion: 'test.example.com/v1',
      kind: 'Task',
      metadata: { name: 't' },
      spec: { done: false },
    });
    const waiting = kubectl.start(['wait', '--for=jsonpath={.spec.done}=true', 'task/t', '--timeout=20s']);
    await kubectl.ok(['patch', 'task', 't', '--type=merge', '-p', '{"spec":{"done":true}}']);
    expect(await waiting.ended).toBe(0);
  });
});
