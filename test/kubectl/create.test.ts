import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { type Kubectl, kubectlHas } from '../support/kubectl.ts';

/** `kubectl create KIND`: kubectl builds the object, and sends most of them as protobuf. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-create-'));
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace('create'));
});
afterAll(async () => {
  await cluster.close();
  rmSync(directory, { recursive: true, force: true });
});

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');

describe('create namespace', () => {
  it('makes one that is active and labelled with its name', async () => {
    expect(await kubectl.ok('create namespace made-here')).toBe('namespace/made-here created\n');
    expect(await kubectl.json('get namespace made-here')).toMatchObject({
      metadata: { name: 'made-here', labels: { 'kubernetes.io/metadata.name': 'made-here' } },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    });
    expect(await kubectl.fails('create ns made-here')).toBe(
      'Error from server (AlreadyExists): namespaces "made-here" already exists\n',
    );
    expect(await kubectl.fails('create ns Not_A_Label')).toContain(
      'The Namespace "Not_A_Label" is invalid: metadata.name: Invalid value: "Not_A_Label": a lowercase RFC 1123 label must consist of',
    );
  });
});

describe('create configmap', () => {
  it('keeps text as text and bytes as bytes', async () => {
    const text = join(directory, 'settings.ini');
    writeFileSync(text, 'a=1\nb=ü\n');
    const bytes = join(directory, 'logo.bin');
    writeFileSync(bytes, Buffer.from([0, 255, 1, 2]));
    const variables = join(directory, 'some.env');
    writeFileSync(variables, '# comment\nHOST=example.com\nEMPTY=\n');
    await kubectl.ok([
      'create',
      'configmap',
      'mixed',
      '--from-literal=a=1',
      '--from-literal=b=x=y',
      `--from-file=${text}`,
      `--from-file=renamed=${bytes}`,
    ]);
    expect(await kubectl.json('get cm mixed')).toMatchObject({
      data: { a: '1', b: 'x=y', 'settings.ini': 'a=1\nb=ü\n' },
      binaryData: { renamed: base64(Buffer.from([0, 255, 1, 2])) },
    });
    await kubectl.ok(['create', 'configmap', 'variables', `--from-env-file=${variables}`]);
    expect((await kubectl.json('get cm variables')).data).toEqual({ EMPTY: '', HOST: 'example.com' });
    await kubectl.ok(['create', 'configmap', 'empty']);
    expect(await kubectl.json('get cm empty')).not.toHaveProperty('data');
  });

  it('appends a hash of the content when asked, so that a rehearsal shows it too', async () => {
    const args = ['create', 'configmap', 'hashed', '--from-literal=a=1', '--append-hash', '-o', 'name'];
    const name = await kubectl.ok([...args, '--dry-run=server']);
    expect(name).toMatch(/^configmap\/hashed-[a-z0-9]{10}\n$/);
    expect(await kubectl.ok(args)).toBe(name);
  });
});

describe('create secret', () => {
  it('generic', async () => {
    await kubectl.ok('create secret generic plain --from-literal=password=hunter2 --type=example.com/own');
    expect(await kubectl.json('get secret plain')).toMatchObject({
      type: 'example.com/own',
      data: { password: base64('hunter2') },
    });
    expect(await kubectl.fails('create secret generic plain')).toBe(
      'error: failed to create secret secrets "plain" already exists\n',
    );
  });

  it('docker-registry', async () => {
    await kubectl.ok(
      'create secret docker-registry pull --docker-server=registry.example.com --docker-username=user --docker-password=pass --docker-email=me@example.com',
    );
    const { type, data } = await kubectl.json('get secret pull');
    expect(type).toBe('kubernetes.io/dockerconfigjson');
    expect(JSON.parse(Buffer.from(data['.dockerconfigjson'], 'base64').toString())).toEqual({
      auths: {
        'registry.example.com': {
          username: 'user',
          password: 'pass',
          email: 'me@example.com',
          auth: base64('user:pass'),
        },
      },
    });
  });

  it('tls, whose kind the server holds to its keys', async () => {
    const key = join(directory, 'tls.key');
    const certificate = join(directory, 'tls.crt');
    // Any pair that belongs together will do.
    const pair = cluster.godwit.access();
    writeFileSync(key, pair.key);
    writeFileSync(certificate, pair.certificate);
    await kubectl.ok(['create', 'secret', 'tls', 'serving', `--cert=${certificate}`, `--key=${key}`]);
    expect(await kubectl.json('get secret serving')).toMatchObject({
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64(readFileSync(certificate)), 'tls.key': base64(readFileSync(key)) },
    });
    expect(await kubectl.fails('create secret generic half --type=kubernetes.io/tls --from-literal=tls.crt=x')).toBe(
      'error: failed to create secret Secret "half" is invalid: data[tls.key]: Required value\n',
    );
  });

  it('never shows what is in it where it is only described', async () => {
    expect(await kubectl.ok('describe secret plain')).toContain('password:  7 bytes\n');
    expect(await kubectl.ok('get secrets')).not.toContain(base64('hunter2'));
  });
});

describe('create serviceaccount', () => {
  it('makes one', async () => {
    expect(await kubectl.ok('create serviceaccount robot')).toBe('serviceaccount/robot created\n');
    expect(await kubectl.json('get sa robot')).toMatchObject({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'robot', namespace },
    });
  });
});

describe('create role and clusterrole', () => {
  it('builds rules, resources by their groups', async () => {
    expect(await kubectl.ok('create role reader --verb=get,list --resource=pods,pods/log,deployments.apps')).toBe(
      'role.rbac.authorization.k8s.io/reader created\n',
    );
    expect((await kubectl.json('get role reader')).rules).toEqual([
      { apiGroups: [''], resources: ['pods', 'pods/log'], verbs: ['get', 'list'] },
      { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list'] },
    ]);
    await kubectl.ok('create role one --verb=get --resource=secrets --resource-name=first --resource-name=second');
    expect((await kubectl.json('get role one')).rules).toEqual([
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['first', 'second'], verbs: ['get'] },
    ]);
    expect(await kubectl.fails('create role wrong --verb=get --resource=nonsense')).toBe(
      `the server doesn't have a resource type "nonsense"\n`,
    );
  });

  it('takes paths that are no resources in cluster roles alone', async () => {
    await kubectl.ok('create clusterrole paths --verb=get --non-resource-url=/logs/* --non-resource-url=/metrics');
    expect((await kubectl.json('get clusterrole paths')).rules).toEqual([
      { nonResourceURLs: ['/logs/*', '/metrics'], verbs: ['get'] },
    ]);
    const stdin = JSON.stringify({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'paths' },
      rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }],
    });
    expect(await kubectl.fails('create -f -', { stdin })).toBe(
      'The Role "paths" is invalid: rules[0].nonResourceURLs: Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource URLs\n',
    );
  });

  it('gathers the rules of labelled roles, as they come and go', async () => {
    await kubectl.ok('create clusterrole gathered --aggregation-rule=create.example.com/gather=true');
    expect((await kubectl.json('get clusterrole gathered')).aggregationRule).toEqual({
      clusterRoleSelectors: [{ matchLabels: { 'create.example.com/gather': 'true' } }],
    });
    await kubectl.ok('create clusterrole part --verb=get --resource=nodes');
    await kubectl.ok('label clusterrole part create.example.com/gather=true');
    await eventually(async () =>
      expect((await kubectl.json('get clusterrole gathered')).rules).toEqual([
        { apiGroups: [''], resources: ['nodes'], verbs: ['get'] },
      ]),
    );
    await kubectl.ok('label clusterrole part create.example.com/gather-');
    await eventually(async () => expect((await kubectl.json('get clusterrole gathered')).rules ?? []).toEqual([]));
  });
});

describe('create rolebinding and clusterrolebinding', () => {
  it('names users, groups and accounts', async () => {
    await kubectl.ok([
      'create',
      'rolebinding',
      'readers',
      '--role=reader',
      '--user=jane',
      '--group=devs',
      `--serviceaccount=${namespace}:robot`,
    ]);
    const { roleRef, subjects } = await kubectl.json('get rolebinding readers');
    expect(roleRef).toEqual({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' });
    expect(subjects).toEqual([
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' },
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'devs' },
      { kind: 'ServiceAccount', name: 'robot', namespace },
    ]);
    await kubectl.ok('create clusterrolebinding create-viewers --clusterrole=view --group=devs');
    expect((await kubectl.json('get clusterrolebinding create-viewers')).roleRef.kind).toBe('ClusterRole');
  });

  it('never points elsewhere afterwards', async () => {
    const patch = '{"roleRef":{"name":"other"}}';
    expect(await kubectl.fails(['patch', 'rolebinding', 'readers', '-p', patch])).toMatch(
      /^The RoleBinding "readers" is invalid: roleRef: Invalid value: .*: cannot change roleRef\n$/s,
    );
  });
});

describe('create quota', () => {
  it('makes a quota that is enforced from then on', async () => {
    const { kubectl: inside, namespace: scarce } = await cluster.namespace('scarce');
    await inside.ok(
      'create quota counts --hard=configmaps=1,secrets=0,count/roles.rbac.authorization.k8s.io=1,requests.cpu=500m,limits.memory=1Gi',
    );
    expect((await inside.json('get quota counts')).spec.hard).toEqual({
      configmaps: '1',
      secrets: '0',
      'count/roles.rbac.authorization.k8s.io': '1',
      'requests.cpu': '500m',
      'limits.memory': '1Gi',
    });
    await playQuotaController(scarce, 'counts', [
      'configmaps',
      'secrets',
      'count/roles.rbac.authorization.k8s.io',
      'requests.cpu',
      'limits.memory',
    ]);
    await inside.ok('create configmap first');
    expect(await inside.fails('create configmap second')).toBe(
      'error: failed to create configmap: configmaps "second" is forbidden: exceeded quota: counts, requested: configmaps=1, used: configmaps=1, limited: configmaps=1\n',
    );
    expect(await inside.fails('create secret generic any')).toBe(
      'error: failed to create secret secrets "any" is forbidden: exceeded quota: counts, requested: secrets=1, used: secrets=0, limited: secrets=0\n',
    );
    await inside.ok('create role a --verb=get --resource=pods');
    expect(await inside.fails('create role b --verb=get --resource=pods')).toBe(
      'Error from server (Forbidden): roles.rbac.authorization.k8s.io "b" is forbidden: exceeded quota: counts, requested: count/roles.rbac.authorization.k8s.io=1, used: count/roles.rbac.authorization.k8s.io=1, limited: count/roles.rbac.authorization.k8s.io=1\n',
    );
    const pod = (name: string, cpu: string): string =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: {
          containers: [{ name: 'main', image: 'x', resources: { requests: { cpu }, limits: { memory: '600Mi' } } }],
        },
      });
    await inside.ok('create -f -', { stdin: pod('fits', '300m') });
    expect(await inside.fails('create -f -', { stdin: pod('too-much', '300m') })).toBe(
      'Error from server (Forbidden): error when creating "STDIN": pods "too-much" is forbidden: exceeded quota: counts, requested: limits.memory=600Mi,requests.cpu=300m, used: limits.memory=600Mi,requests.cpu=300m, limited: limits.memory=1Gi,requests.cpu=500m\n',
    );
    const unsized = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'unsized' },
      spec: { containers: [{ name: 'main', image: 'x' }] },
    });
    expect(await inside.fails('create -f -', { stdin: unsized })).toBe(
      'Error from server (Forbidden): error when creating "STDIN": pods "unsized" is forbidden: failed quota: counts: must specify limits.memory for: main; requests.cpu for: main\n',
    );
    expect((await inside.json('get quota counts')).status.used).toMatchObject({
      configmaps: '1',
      'requests.cpu': '300m',
      'limits.memory': '600Mi',
    });
  });

  it('counts only what its scopes hold', async () => {
    const { kubectl: inside, namespace: scoped } = await cluster.namespace('scoped');
    await inside.ok('create quota besteffort --hard=pods=0 --scopes=BestEffort');
    await playQuotaController(scoped, 'besteffort', ['pods']);
    const pod = (name: string, resources: object): string =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { containers: [{ name: 'main', image: 'x', resources }] },
      });
    await inside.ok('create -f -', { stdin: pod('burstable', { requests: { cpu: '1m' } }) });
    expect(await inside.fails('create -f -', { stdin: pod('besteffort', {}) })).toContain(
      'pods "besteffort" is forbidden: exceeded quota: besteffort, requested: pods=1, used: pods=0, limited: pods=0\n',
    );
  });

  /** The controller that counts what is there already comes in later work; a fresh namespace holds nothing. */
  async function playQuotaController(inNamespace: string, name: string, resources: string[]): Promise<void> {
    const path = `/api/v1/namespaces/${inNamespace}/resourcequotas/${name}`;
    const { spec } = await cluster.get(path);
    const used = Object.fromEntries(resources.map((resource) => [resource, '0']));
    await cluster.merge(`${path}/status`, { status: { hard: spec.hard, used } });
  }
});

describe('create poddisruptionbudget', () => {
  it('by number and by share', async () => {
    await kubectl.ok('create pdb two --selector=app=web --min-available=2');
    expect((await kubectl.json('get pdb two')).spec).toEqual({
      minAvailable: 2,
      selector: { matchLabels: { app: 'web' } },
    });
    await kubectl.ok(['create', 'pdb', 'half', '--selector=app in (web,db)', '--max-unavailable=50%']);
    expect((await kubectl.json('get pdb half')).spec).toEqual({
      maxUnavailable: '50%',
      selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['db', 'web'] }] },
    });
  });
});

describe('create priorityclass', () => {
  it('which admission then gives to pods', async () => {
    await kubectl.ok('create priorityclass create-high --value=1000 --description=matters --preemption-policy=Never');
    expect(await kubectl.json('get pc create-high')).toMatchObject({
      value: 1000,
      description: 'matters',
      preemptionPolicy: 'Never',
    });
    const pod = (name: string, priorityClassName: string): string =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { priorityClassName, containers: [{ name: 'main', image: 'x' }] },
      });
    await kubectl.ok('create -f -', { stdin: pod('important', 'create-high') });
    expect((await kubectl.json('get pod important')).spec).toMatchObject({ priority: 1000, preemptionPolicy: 'Never' });
    expect(await kubectl.fails('create -f -', { stdin: pod('lost', 'nothing') })).toBe(
      'Error from server (Forbidden): error when creating "STDIN": pods "lost" is forbidden: no PriorityClass with name nothing was found\n',
    );
    expect(await kubectl.fails('create priorityclass too-high --value=1000000001')).toContain(
      'PriorityClass.scheduling.k8s.io "too-high" is invalid: value: Forbidden: maximum allowed value of a user defined priority is 1000000000',
    );
  });
});

describe('create what is only stored', () => {
  it('services', async () => {
    await kubectl.ok('create service clusterip inner --tcp=80:8080 --tcp=443');
    expect((await kubectl.json('get service inner')).spec).toMatchObject({
      type: 'ClusterIP',
      selector: { app: 'inner' },
      ports: [
        { name: '80-8080', port: 80, targetPort: 8080, protocol: 'TCP' },
        { name: '443', port: 443, targetPort: 443, protocol: 'TCP' },
      ],
      sessionAffinity: 'None',
    });
    await kubectl.ok('create service clusterip headless --clusterip=None');
    expect((await kubectl.json('get service headless')).spec.clusterIP).toBe('None');
    await kubectl.ok('create service nodeport outer --tcp=80 --node-port=30080');
    expect((await kubectl.json('get service outer')).spec.ports[0]).toMatchObject({ nodePort: 30080 });
    await kubectl.ok('create service loadbalancer front --tcp=80');
    await kubectl.ok('create service externalname away --external-name=example.com');
    expect((await kubectl.json('get service away')).spec).toMatchObject({
      type: 'ExternalName',
      externalName: 'example.com',
    });
  });

  it('deployments', async () => {
    expect(await kubectl.ok('create deployment web --image=nginx:1 --image=sidecar:2 --replicas=3')).toBe(
      'deployment.apps/web created\n',
    );
    expect((await kubectl.json('get deployment web')).spec).toMatchObject({
      replicas: 3,
      selector: { matchLabels: { app: 'web' } },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      revisionHistoryLimit: 10,
      template: {
        metadata: { labels: { app: 'web' } },
        spec: {
          containers: [
            { name: 'nginx', image: 'nginx:1' },
            { name: 'sidecar', image: 'sidecar:2' },
          ],
        },
      },
    });
  });

  it('jobs and cronjobs, and a job of a cronjob', async () => {
    await kubectl.ok('create job once --image=busybox -- sh -c true');
    expect((await kubectl.json('get job once')).spec).toMatchObject({
      backoffLimit: 6,
      completions: 1,
      parallelism: 1,
      template: { spec: { restartPolicy: 'Never', containers: [{ command: ['sh', '-c', 'true'] }] } },
    });
    await kubectl.ok(['create', 'cronjob', 'nightly', '--image=busybox', '--schedule=0 3 * * *', '--', 'true']);
    expect((await kubectl.json('get cronjob nightly')).spec).toMatchObject({
      schedule: '0 3 * * *',
      concurrencyPolicy: 'Allow',
      suspend: false,
    });
    await kubectl.ok('create job by-hand --from=cronjob/nightly');
    expect((await kubectl.json('get job by-hand')).metadata).toMatchObject({
      annotations: { 'cronjob.kubernetes.io/instantiate': 'manual' },
      ownerReferences: [{ kind: 'CronJob', name: 'nightly', apiVersion: 'batch/v1', controller: true }],
    });
    expect(await kubectl.fails(['create', 'cronjob', 'wrong', '--image=busybox', '--schedule=sometimes'])).toContain(
      'CronJob.batch "wrong" is invalid: spec.schedule: Invalid value: "sometimes": expected exactly 5 fields, found 1: [sometimes]',
    );
  });

  it('ingresses', async () => {
    await kubectl.ok([
      'create',
      'ingress',
      'front',
      '--class=nginx',
      '--rule=example.com/path*=inner:80,tls=certificate',
    ]);
    expect((await kubectl.json('get ingress front')).spec).toEqual({
      ingressClassName: 'nginx',
      rules: [
        {
          host: 'example.com',
          http: {
            paths: [
              { path: '/path', pathType: 'Prefix', backend: { service: { name: 'inner', port: { number: 80 } } } },
            ],
          },
        },
      ],
      tls: [{ hosts: ['example.com'], secretName: 'certificate' }],
    });
  });
});

describe('run, expose, autoscale and set', () => {
  it('makes what they make', async () => {
    expect(await kubectl.ok('run lone --image=nginx --port=80 --labels=app=lone --env=A=b')).toBe('pod/lone created\n');
    expect((await kubectl.json('get pod lone')).spec.containers[0]).toMatchObject({
      name: 'lone',
      image: 'nginx',
      env: [{ name: 'A', value: 'b' }],
      ports: [{ containerPort: 80, protocol: 'TCP' }],
    });
    expect(await kubectl.ok('expose pod lone --port=80 --name=lone')).toBe('service/lone exposed\n');
    expect((await kubectl.json('get service lone')).spec.selector).toEqual({ app: 'lone' });
    expect(await kubectl.ok('set image deployment/web nginx=nginx:2')).toBe('deployment.apps/web image updated\n');
    expect(await kubectl.ok('set env deployment/web A=1')).toBe('deployment.apps/web env updated\n');
    expect((await kubectl.json('get deployment web')).spec.template.spec.containers[0]).toMatchObject({
      image: 'nginx:2',
      env: [{ name: 'A', value: '1' }],
    });
    expect(await kubectl.ok('scale deployment web --replicas=5 --current-replicas=3')).toBe(
      'deployment.apps/web scaled\n',
    );
    expect(await kubectl.fails('scale deployment web --replicas=1 --current-replicas=3')).toBe(
      'error: Expected replicas to be 3, was 5\n',
    );
  });
});

describe('options of all of them', () => {
  it('rehearse on the server', async () => {
    expect(await kubectl.ok('create sa rehearsed --dry-run=server')).toBe(
      'serviceaccount/rehearsed created (server dry run)\n',
    );
    expect(await kubectl.ok('create role rehearsed --verb=get --resource=pods --dry-run=server -o name')).toBe(
      'role.rbac.authorization.k8s.io/rehearsed\n',
    );
    expect(await kubectl.fails('get sa rehearsed')).toContain('not found');
  });

  it('know who is asking', async () => {
    if (!kubectlHas(26, 'create --field-manager everywhere')) return;
    await kubectl.ok('create configmap mine --from-literal=a=1 --field-manager=me');
    expect((await kubectl.json('get cm mine --show-managed-fields')).metadata.managedFields).toMatchObject([
      { manager: 'me', operation: 'Update', fieldsV1: { 'f:data': { '.': {}, 'f:a': {} } } },
    ]);
  });

  it('say when the namespace is not there', async () => {
    expect(await cluster.kubectl.fails('create configmap lost -n nowhere')).toBe(
      'error: failed to create configmap: namespaces "nowhere" not found\n',
    );
    expect(await cluster.kubectl.fails('create sa lost -n nowhere')).toBe(
      'error: failed to create serviceaccount: namespaces "nowhere" not found\n',
    );
  });
});
