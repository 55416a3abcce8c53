import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Anything } from '../support/api.ts';
import { Cluster, ROOT_CERTIFICATE } from '../support/cluster.ts';
import { itSince, type Kubectl, type Result } from '../support/kubectl.ts';
import { configMap, deployment } from './manifests.ts';

/** The commands that change what is there without a manifest of it: edit, replace, scale, set, label and their like. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;
let directory: string;

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace());
  directory = mkdtempSync(join(tmpdir(), 'godwit-change-'));
});
afterAll(() => cluster.close());

const stdin = (manifest: unknown): { stdin: string } => ({ stdin: JSON.stringify(manifest) });

describe('edit', () => {
  /** Edits with a shell script that gets the file as `$1`. */
  function edit(args: readonly string[], script: string): Promise<Result> {
    const editor = join(directory, 'editor.sh');
    writeFileSync(editor, `#!/bin/sh\nset -e\n${script}\n`);
    chmodSync(editor, 0o755);
    return kubectl.run(['edit', ...args], { env: { KUBE_EDITOR: editor } });
  }

  beforeAll(() => kubectl.apply(configMap('edited', { a: '1' })));

  it('sends what was changed, as a patch', async () => {
    const result = await edit(['configmap', 'edited'], `sed -i 's/a: "1"/a: "2"/' "$1"`);
    expect(result).toEqual({ code: 0, stdout: 'configmap/edited edited\n', stderr: '' });
    expect((await kubectl.json('get configmap edited')).data).toEqual({ a: '2' });
  });

  it('sends nothing when nothing was changed', async () => {
    const result = await edit(['configmap', 'edited'], 'true');
    expect(result).toEqual({ code: 0, stdout: '', stderr: 'Edit cancelled, no changes made.\n' });
  });

  it('opens again what the server refused, with the reason on top, until it is right', async () => {
    const again = join(directory, 'again.yaml');
    const result = await edit(
      ['configmap', 'edited'],
      `if [ -e ${directory}/tried ]; then
  cp "$1" ${again}
  sed -i 's/Not_A_Key!/right/' "$1"
else
  touch ${directory}/tried
  sed -i 's/a: "2"/Not_A_Key!: "2"/' "$1"
fi`,
    );
    expect(result.code).toBe(0);
    expect(result.stdout).toBe('configmap/edited edited\n');
    expect(existsSync(again)).toBe(true);
    expect(readFileSync(again, 'utf8')).toContain(
      `# configmaps "edited" was not valid:\n# * data[Not_A_Key!]: Invalid value: "Not_A_Key!": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`,
    );
    expect((await kubectl.json('get configmap edited')).data).toEqual({ right: '2' });
  });

  itSince(28, 'edits the status where asked to', async () => {
    await kubectl.apply(deployment('edited'));
    const result = await edit(
      ['deployment', 'edited', '--subresource=status'],
      `sed -i -e 's/^status: {}/status: {replicas: 3}/' -e 's/^  replicas: 1/  replicas: 9/' "$1"`,
    );
    expect(result).toEqual({ code: 0, stdout: 'deployment.apps/edited edited\n', stderr: '' });
    const { spec, status } = await kubectl.json('get deployment edited');
    expect([spec.replicas, status.replicas]).toEqual([1, 3]);
  });

  it('creates from an editor', async () => {
    const manifest = join(directory, 'new.json');
    writeFileSync(manifest, JSON.stringify(configMap('born', { a: '1' })));
    const editor = join(directory, 'create.sh');
    writeFileSync(editor, `#!/bin/sh\nsed -i 's/a: "1"/a: "from the editor"/' "$1"\n`);
    chmodSync(editor, 0o755);
    expect(await kubectl.ok(['create', '--edit', '-f', manifest], { env: { KUBE_EDITOR: editor } })).toBe(
      'configmap/born created\n',
    );
    expect((await kubectl.json('get configmap born')).data).toEqual({ a: 'from the editor' });
  });
});

describe('replace', () => {
  it('puts one object in the place of another, whole', async () => {
    await kubectl.apply(configMap('replaced', { a: '1', b: '2' }, { x: 'y' }));
    const { metadata } = await kubectl.json('get configmap replaced');
    expect(await kubectl.ok(['replace', '-f', '-'], stdin(configMap('replaced', { c: '3' })))).toBe(
      'configmap/replaced replaced\n',
    );
    const after = await kubectl.json('get configmap replaced');
    expect(after.data).toEqual({ c: '3' });
    expect(after.metadata.labels).toBeUndefined();
    expect(after.metadata.uid).toBe(metadata.uid);
  });

  it('refuses what is not there, what has changed meanwhile, and what was meant for another', async () => {
    expect(await kubectl.fails(['replace', '-f', '-'], stdin(configMap('absent', {})))).toBe(
      'Error from server (NotFound): error when replacing "STDIN": configmaps "absent" not found\n',
    );
    const stale = await kubectl.json('get configmap replaced');
    await kubectl.ok('label configmap replaced fresh=yes');
    expect(await kubectl.fails(['replace', '-f', '-'], stdin(stale))).toBe(
      'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on configmaps "replaced": the object has been modified; please apply your changes to the latest version and try again\n',
    );
    const other = configMap('replaced', {});
    other.metadata.uid = '00000000-0000-0000-0000-000000000000';
    const { metadata } = await kubectl.json('get configmap replaced');
    // Kubernetes tells of its store here as well.
    expect(await kubectl.fails(['replace', '-f', '-'], stdin(other))).toMatch(
      new RegExp(
        `^Error from server \\(Conflict\\): error when replacing "STDIN": Operation cannot be fulfilled on configmaps "replaced": .*Precondition failed: UID in precondition: 00000000-0000-0000-0000-000000000000, UID in object meta: ${metadata.uid}\n$`,
      ),
    );
  });

  it('deletes and creates anew when forced', async () => {
    const { metadata } = await kubectl.json('get configmap replaced');
    expect(await kubectl.ok(['replace', '--force', '-f', '-'], stdin(configMap('replaced', { d: '4' })))).toBe(
      'configmap "replaced" deleted\nconfigmap/replaced replaced\n',
    );
    const after = await kubectl.json('get configmap replaced');
    expect(after.data).toEqual({ d: '4' });
    expect(after.metadata.uid).not.toBe(metadata.uid);
  });

  itSince(28, 'replaces a status alone', async () => {
    await kubectl.apply(deployment('stated'));
    const object = await kubectl.json('get deployment stated');
    object.status = { replicas: 2, observedGeneration: 1 };
    object.spec.replicas = 7;
    expect(await kubectl.ok(['replace', '--subresource=status', '-f', '-'], stdin(object))).toBe(
      'deployment.apps/stated replaced\n',
    );
    const { spec, status } = await kubectl.json('get deployment stated');
    expect([spec.replicas, status]).toEqual([1, { replicas: 2, observedGeneration: 1 }]);
  });
});

describe('scale', () => {
  itSince(28, 'scales, under conditions too', async () => {
    await kubectl.apply(deployment('scaled'));
    expect(await kubectl.ok('scale deployment scaled --replicas=3')).toBe('deployment.apps/scaled scaled\n');
    expect((await kubectl.json('get deployment scaled')).spec.replicas).toBe(3);
    expect(await kubectl.ok('scale deployment/scaled --current-replicas=3 --replicas=0')).toBe(
      'deployment.apps/scaled scaled\n',
    );
    expect((await kubectl.json('get deployment scaled')).spec.replicas).toBe(0);
    expect(await kubectl.fails('scale deployment scaled --current-replicas=3 --replicas=1')).toBe(
      'error: Expected replicas to be 3, was 0\n',
    );
    expect(await kubectl.fails('scale deployment absent --replicas=1')).toBe(
      'error: no objects passed to scale deployments.apps "absent" not found\n',
    );
    expect(await kubectl.fails('scale configmap replaced --replicas=1')).toContain(
      'the server could not find the requested resource',
    );
  });
});

describe('set', () => {
  it('sets images, variables, resources and more', async () => {
    await kubectl.apply(deployment('set'));
    expect(await kubectl.ok('set image deployment/set main=main:2')).toBe('deployment.apps/set image updated\n');
    expect(await kubectl.ok('set env deployment/set B- C=3')).toBe('deployment.apps/set env updated\n');
    expect(await kubectl.ok('set resources deployment/set --limits=cpu=200m,memory=64Mi')).toBe(
      'deployment.apps/set resource requirements updated\n',
    );
    await kubectl.ok('create serviceaccount robot');
    expect(await kubectl.ok('set serviceaccount deployment set robot')).toBe(
      'deployment.apps/set serviceaccount updated\n',
    );
    const { template } = (await kubectl.json('get deployment set')).spec;
    expect(template.spec.containers[0]).toMatchObject({
      image: 'main:2',
      env: [
        { name: 'A', value: '1' },
        { name: 'C', value: '3' },
      ],
      resources: { limits: { cpu: '200m', memory: '64Mi' } },
    });
    expect(template.spec.serviceAccountName).toBe('robot');
    expect(await kubectl.ok('set env deployment/set --list')).toBe('# Deployment set, container main\nA=1\nC=3\n');
    expect(await kubectl.fails('set image deployment/set none=x')).toBe(
      'error: unable to find container named "none"\n',
    );
  });
});

describe('label', () => {
  itSince(28, 'adds, refuses to overwrite, overwrites, removes and lists', async () => {
    await kubectl.apply(configMap('labelled', {}));
    expect(await kubectl.ok('label configmap labelled tier=web env=test')).toBe('configmap/labelled labeled\n');
    expect(await kubectl.ok('label configmap labelled tier=web')).toBe('configmap/labelled not labeled\n');
    expect(await kubectl.fails('label configmap labelled tier=db')).toBe(
      "error: 'tier' already has a value (web), and --overwrite is false\n",
    );
    expect(await kubectl.ok('label configmap labelled tier=db --overwrite')).toBe('configmap/labelled labeled\n');
    expect(await kubectl.ok('label configmap labelled env-')).toBe('configmap/labelled unlabeled\n');
    expect(await kubectl.ok('label configmap labelled env-')).toBe(
      'label "env" not found.\nconfigmap/labelled not labeled\n',
    );
    expect(await kubectl.ok('label configmap labelled --list')).toBe('tier=db\n');
    const { metadata } = await kubectl.json('get configmap labelled');
    expect(metadata.labels).toEqual({ tier: 'db' });
    expect(await kubectl.fails(`label configmap labelled --resource-version=1 a=b`)).toContain(
      'the object has been modified; please apply your changes to the latest version and try again',
    );
    expect(await kubectl.fails('label configmap labelled bad=a/b')).toContain('a valid label must be');
    expect(await kubectl.ok('label configmap labelled dry=run --dry-run=server')).toBe(
      'configmap/labelled labeled (server dry run)\n',
    );
  });

  it('labels many: all, and by selector', async () => {
    const many = await cluster.namespace('many');
    for (const name of ['a', 'b', 'c'])
      await many.kubectl.apply(configMap(name, {}, name === 'c' ? {} : { side: 'left' }));
    expect(await many.kubectl.ok('label configmaps --all all=yes')).toBe(
      `configmap/a labeled\nconfigmap/b labeled\nconfigmap/c labeled\nconfigmap/${ROOT_CERTIFICATE} labeled\n`,
    );
    expect(await many.kubectl.ok('label configmaps -l side=left seen=yes')).toBe(
      'configmap/a labeled\nconfigmap/b labeled\n',
    );
    expect(await many.kubectl.ok('get configmaps -l seen=yes,all -o name')).toBe('configmap/a\nconfigmap/b\n');
  });
});

describe('annotate', () => {
  it('adds, refuses to overwrite, overwrites and removes', async () => {
    await kubectl.apply(configMap('annotated', {}));
    expect(await kubectl.ok(['annotate', 'configmap', 'annotated', 'note=a b, c/d'])).toBe(
      'configmap/annotated annotated\n',
    );
    expect(await kubectl.fails('annotate configmap annotated note=x')).toBe(
      "error: --overwrite is false but found the following declared annotation(s): 'note' already has a value (a b, c/d)\n",
    );
    expect(await kubectl.ok('annotate configmap annotated note=x --overwrite')).toBe('configmap/annotated annotated\n');
    expect((await kubectl.json('get configmap annotated')).metadata.annotations['note']).toBe('x');
    expect(await kubectl.ok('annotate configmap annotated note-')).toBe('configmap/annotated annotated\n');
    expect((await kubectl.json('get configmap annotated')).metadata.annotations['note']).toBeUndefined();
  });
});

describe('nodes', () => {
  const node = (name: string): Anything => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { pool: 'a' } },
  });

  beforeAll(async () => {
    await kubectl.apply(node('n1'));
    await kubectl.apply(node('n2'));
  });

  /** Without those that come and go with a node's conditions. */
  const taintsOf = async (name: string): Promise<Anything[]> =>
    ((await kubectl.json(`get node ${name}`)).spec.taints ?? []).filter(({ key }: Anything) => !key.includes('/'));

  it('are tainted, and the taints changed and removed', async () => {
    expect(await kubectl.ok('taint node n1 dedicated=vm:NoSchedule')).toBe('node/n1 tainted\n');
    expect(await kubectl.fails('taint node n1 dedicated=other:NoSchedule')).toBe(
      'error: node n1 already has dedicated taint(s) with same effect(s) and --overwrite is false\n',
    );
    expect(await kubectl.ok('taint node n1 dedicated=other:NoSchedule --overwrite')).toBe('node/n1 modified\n');
    expect(await kubectl.ok('taint node n1 dedicated=other:NoExecute')).toBe('node/n1 tainted\n');
    expect(await taintsOf('n1')).toEqual([
      { key: 'dedicated', value: 'other', effect: 'NoExecute' },
      { key: 'dedicated', value: 'other', effect: 'NoSchedule' },
    ]);
    expect(await kubectl.ok('taint node n1 dedicated:NoSchedule-')).toBe('node/n1 untainted\n');
    expect(await kubectl.ok('taint node n1 dedicated-')).toBe('node/n1 untainted\n');
    expect(await taintsOf('n1')).toEqual([]);
    expect(await kubectl.fails('taint node n1 dedicated-')).toBe('error: taint "dedicated" not found\n');
    expect(await kubectl.ok('taint nodes --all burst:PreferNoSchedule')).toBe('node/n1 tainted\nnode/n2 tainted\n');
    expect(await kubectl.ok('taint nodes -l pool=a burst-')).toBe('node/n1 untainted\nnode/n2 untainted\n');
  });

  it('are cordoned and uncordoned', async () => {
    expect(await kubectl.ok('cordon n1')).toBe('node/n1 cordoned\n');
    expect(await kubectl.ok('cordon n1')).toBe('node/n1 already cordoned\n');
    expect((await kubectl.json('get node n1')).spec.unschedulable).toBe(true);
    expect(await kubectl.ok('get node n1 --no-headers')).toMatch(/^n1 +Unknown,SchedulingDisabled +<none> /);
    expect(await kubectl.ok('uncordon n1')).toBe('node/n1 uncordoned\n');
    expect(await kubectl.ok('uncordon n1')).toBe('node/n1 already uncordoned\n');
    expect((await kubectl.json('get node n1')).spec.unschedulable).toBeUndefined();
    expect(await kubectl.ok('cordon -l pool=a --dry-run=server')).toBe(
      'node/n1 cordoned (server dry run)\nnode/n2 cordoned (server dry run)\n',
    );
    expect(await kubectl.fails('cordon absent')).toContain('Error from server (NotFound): nodes "absent" not found');
  });
});

describe('rollout', () => {
  /** The test is the deployment controller here: it makes the replica sets and reports the status. */
  const replicaSet = (revision: number, owner: Anything): Anything => ({
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `rolled-${revision}`,
      labels: { app: 'rolled' },
      annotations: {
        'deployment.kubernetes.io/revision': String(revision),
        'kubernetes.io/change-cause': `change ${revision}`,
      },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          name: 'rolled',
          uid: owner.metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: 'rolled', 'pod-template-hash': String(revision) } },
      template: {
        metadata: { labels: { app: 'rolled', 'pod-template-hash': String(revision) } },
        spec: { containers: [{ name: 'main', image: `main:${revision}` }] },
      },
    },
  });
  const status = (body: object): Promise<Anything> =>
    cluster.merge(`/apis/apps/v1/namespaces/${namespace}/deployments/rolled/status`, { status: body });

  it('shows its history, waits for its end, pauses, resumes, restarts and undoes', async () => {
    await kubectl.apply(deployment('rolled'));
    const owner = await kubectl.json('get deployment rolled');
    await kubectl.apply(replicaSet(1, owner));
    await kubectl.apply(replicaSet(2, owner));
    expect(await kubectl.ok('rollout history deployment/rolled')).toBe(
      'deployment.apps/rolled \nREVISION  CHANGE-CAUSE\n1         change 1\n2         change 2\n\n',
    );
    expect(await kubectl.ok('rollout history deployment/rolled --revision=2')).toContain('Image:\tmain:2');

    await status({ observedGeneration: 1, replicas: 1, updatedReplicas: 1 });
    const waiting = kubectl.start(['rollout', 'status', 'deployment/rolled']);
    await expect
      .poll(waiting.output, { timeout: 20_000 })
      .toContain('Waiting for deployment "rolled" rollout to finish: 0 of 1 updated replicas are available...\n');
    await status({ observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1, readyReplicas: 1 });
    expect(await waiting.ended).toBe(0);
    expect(waiting.output()).toContain('deployment "rolled" successfully rolled out\n');

    expect(await kubectl.ok('rollout pause deployment/rolled')).toBe('deployment.apps/rolled paused\n');
    expect(await kubectl.fails('rollout pause deployment/rolled')).toContain('is already paused');
    expect(await kubectl.ok('rollout resume deployment/rolled')).toBe('deployment.apps/rolled resumed\n');
    expect(await kubectl.ok('rollout restart deployment/rolled')).toBe('deployment.apps/rolled restarted\n');
    const restarted = await kubectl.json('get deployment rolled');
    expect(restarted.spec.template.metadata.annotations).toHaveProperty(['kubectl.kubernetes.io/restartedAt']);
    expect(await kubectl.ok('rollout undo deployment/rolled --to-revision=1')).toBe(
      'deployment.apps/rolled rolled back\n',
    );
    expect((await kubectl.json('get deployment rolled')).spec.template.spec.containers[0].image).toBe('main:1');
  });
});

describe('expose', () => {
  it('makes a service of a deployment, with an address of its own', async () => {
    await kubectl.apply(deployment('exposed'));
    expect(await kubectl.ok('expose deployment exposed --port=80 --target-port=http')).toBe(
      'service/exposed exposed\n',
    );
    const { spec } = await kubectl.json('get service exposed');
    expect(spec).toMatchObject({
      type: 'ClusterIP',
      selector: { app: 'exposed' },
      ports: [{ port: 80, protocol: 'TCP', targetPort: 'http' }],
      sessionAffinity: 'None',
    });
    expect(await kubectl.fails('expose deployment exposed --port=80')).toBe(
      'Error from server (AlreadyExists): services "exposed" already exists\n',
    );
  });
});
