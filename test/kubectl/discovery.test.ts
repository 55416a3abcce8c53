import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { type Kubectl, kubectlHas } from '../support/kubectl.ts';
import { gadgetDefinition } from './gadgets.ts';
import { type Row, tableOf } from './table.ts';

/** What kubectl learns of a server before it asks for objects: versions, kinds, documentation. */

const GROUP = 'discovery.example.com';

let cluster: Cluster;
let kubectl: Kubectl;

beforeAll(async () => {
  cluster = await Cluster.start();
  kubectl = cluster.kubectl;
  await kubectl.apply(gadgetDefinition(GROUP));
  await kubectl.ok(`wait --for=condition=Established crd/gadgets.${GROUP}`);
  // OpenAPI follows a little later, there as here.
  await eventually(async () => expect(await kubectl.ok('explain gadgets')).toContain('does things'));
});
afterAll(() => cluster.close());

const lines = (text: string): string[] => text.trimEnd().split('\n');

describe('version and cluster-info', () => {
  it('tells the version that /version tells', async () => {
    const version = JSON.parse(await kubectl.ok('get --raw /version'));
    expect(version).toMatchObject({ major: '1', minor: expect.stringMatching(/^\d+$/) });
    expect(Number(version.minor)).toBeGreaterThanOrEqual(30);
    const printed = await kubectl.json('version');
    expect(printed.serverVersion).toEqual(version);
    expect(await kubectl.ok('version')).toContain(`Server Version: ${version.gitVersion}\n`);
  });

  it('says where the control plane runs', async () => {
    const output = await kubectl.ok('cluster-info', { env: { TERM: 'dumb', NO_COLOR: '1' } });
    expect(lines(output)[0]).toBe(`Kubernetes control plane is running at ${cluster.godwit.access().url}`);
  });

  it('says of a server that is not there what kubectl always says', async () => {
    const { code, stderr } = await kubectl.run(['--server', 'https://127.0.0.1:1', 'get', 'pods']);
    expect(code).toBe(1);
    expect(stderr).toContain(
      'The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?',
    );
  });
});

describe('api-resources', () => {
  const rows = async (...args: string[]): Promise<Row[]> => tableOf(await kubectl.ok(['api-resources', ...args]));
  const row = (NAME: string, SHORTNAMES: string, APIVERSION: string, NAMESPACED: string, KIND: string): Row => ({
    NAME,
    SHORTNAMES,
    APIVERSION,
    NAMESPACED,
    KIND,
  });

  it.each([
    ['configmaps', 'cm', 'v1', 'true', 'ConfigMap'],
    ['endpoints', 'ep', 'v1', 'true', 'Endpoints'],
    ['events', 'ev', 'v1', 'true', 'Event'],
    ['namespaces', 'ns', 'v1', 'false', 'Namespace'],
    ['nodes', 'no', 'v1', 'false', 'Node'],
    ['persistentvolumeclaims', 'pvc', 'v1', 'true', 'PersistentVolumeClaim'],
    ['persistentvolumes', 'pv', 'v1', 'false', 'PersistentVolume'],
    ['pods', 'po', 'v1', 'true', 'Pod'],
    ['resourcequotas', 'quota', 'v1', 'true', 'ResourceQuota'],
    ['secrets', '', 'v1', 'true', 'Secret'],
    ['serviceaccounts', 'sa', 'v1', 'true', 'ServiceAccount'],
    ['services', 'svc', 'v1', 'true', 'Service'],
    ['mutatingwebhookconfigurations', '', 'admissionregistration.k8s.io/v1', 'false', 'MutatingWebhookConfiguration'],
    [
      'validatingwebhookconfigurations',
      '',
      'admissionregistration.k8s.io/v1',
      'false',
      'ValidatingWebhookConfiguration',
    ],
    ['customresourcedefinitions', 'crd,crds', 'apiextensions.k8s.io/v1', 'false', 'CustomResourceDefinition'],
    ['apiservices', '', 'apiregistration.k8s.io/v1', 'false', 'APIService'],
    ['daemonsets', 'ds', 'apps/v1', 'true', 'DaemonSet'],
    ['deployments', 'deploy', 'apps/v1', 'true', 'Deployment'],
    ['replicasets', 'rs', 'apps/v1', 'true', 'ReplicaSet'],
    ['statefulsets', 'sts', 'apps/v1', 'true', 'StatefulSet'],
    ['selfsubjectreviews', '', 'authentication.k8s.io/v1', 'false', 'SelfSubjectReview'],
    ['tokenreviews', '', 'authentication.k8s.io/v1', 'false', 'TokenReview'],
    ['selfsubjectaccessreviews', '', 'authorization.k8s.io/v1', 'false', 'SelfSubjectAccessReview'],
    ['selfsubjectrulesreviews', '', 'authorization.k8s.io/v1', 'false', 'SelfSubjectRulesReview'],
    ['subjectaccessreviews', '', 'authorization.k8s.io/v1', 'false', 'SubjectAccessReview'],
    ['certificatesigningrequests', 'csr', 'certificates.k8s.io/v1', 'false', 'CertificateSigningRequest'],
    ['leases', '', 'coordination.k8s.io/v1', 'true', 'Lease'],
    ['events', 'ev', 'events.k8s.io/v1', 'true', 'Event'],
    ['poddisruptionbudgets', 'pdb', 'policy/v1', 'true', 'PodDisruptionBudget'],
    ['clusterrolebindings', '', 'rbac.authorization.k8s.io/v1', 'false', 'ClusterRoleBinding'],
    ['clusterroles', '', 'rbac.authorization.k8s.io/v1', 'false', 'ClusterRole'],
    ['rolebindings', '', 'rbac.authorization.k8s.io/v1', 'true', 'RoleBinding'],
    ['roles', '', 'rbac.authorization.k8s.io/v1', 'true', 'Role'],
    ['priorityclasses', 'pc', 'scheduling.k8s.io/v1', 'false', 'PriorityClass'],
    ['storageclasses', 'sc', 'storage.k8s.io/v1', 'false', 'StorageClass'],
    ['gadgets', 'gdt', `${GROUP}/v1`, 'true', 'Gadget'],
  ] as const)('knows %s (%s) of %s', async (name, shortNames, apiVersion, namespaced, kind) => {
    expect(await everything).toContainEqual(row(name, shortNames, apiVersion, namespaced, kind));
  });
  let everything: Promise<Row[]>;
  beforeAll(() => {
    everything = rows();
  });

  it('parts namespaced kinds from cluster-wide ones', async () => {
    const [inside, outside] = await Promise.all([rows('--namespaced=true'), rows('--namespaced=false')]);
    expect(new Set(inside.map((each) => each['NAMESPACED']))).toEqual(new Set(['true']));
    expect(new Set(outside.map((each) => each['NAMESPACED']))).toEqual(new Set(['false']));
    expect(inside.length + outside.length).toBe((await everything).length);
  });

  it('selects by verb and prints names with their groups', async () => {
    const listed = lines(await kubectl.ok('api-resources --verbs=list,watch -o name'));
    expect(listed).toEqual(
      expect.arrayContaining(['pods', 'deployments.apps', 'events.events.k8s.io', `gadgets.${GROUP}`]),
    );
    // Questions are only ever created.
    expect(listed.filter((name) => name.includes('reviews'))).toEqual([]);
    const created = lines(await kubectl.ok('api-resources --verbs=create -o name'));
    expect(created).toContain('selfsubjectaccessreviews.authorization.k8s.io');
  });

  it('selects by category', async () => {
    const all = lines(await kubectl.ok('api-resources --categories=all -o name'));
    const order = ['pods', 'services', 'daemonsets.apps', 'deployments.apps', 'replicasets.apps', 'statefulsets.apps'];
    expect(all.filter((name) => order.includes(name))).toEqual(order);
    expect(all).toContain(`gadgets.${GROUP}`);
    expect(all).not.toContain('configmaps');
    expect(lines(await kubectl.ok('api-resources --categories=tools -o name'))).toEqual([`gadgets.${GROUP}`]);
  });

  it('selects by group', async () => {
    expect(await rows(`--api-group=${GROUP}`)).toEqual([row('gadgets', 'gdt', `${GROUP}/v1`, 'true', 'Gadget')]);
    const core = await rows('--api-group=');
    expect(core.every((each) => each['APIVERSION'] === 'v1')).toBe(true);
  });

  it('shows verbs and categories when wide', async () => {
    const wide = await rows('-o', 'wide', '--no-headers=false');
    const byName = (name: string): Row | undefined => wide.find((each) => each['NAME'] === name);
    const every = 'create,delete,deletecollection,get,list,patch,update,watch';
    expect(byName('pods')).toMatchObject({ VERBS: every, CATEGORIES: 'all' });
    // Nobody empties a cluster by one request.
    expect(byName('namespaces')).toMatchObject({ VERBS: 'create,delete,get,list,patch,update,watch' });
    expect(byName('tokenreviews')).toMatchObject({ VERBS: 'create' });
    expect(byName('customresourcedefinitions')).toMatchObject({ CATEGORIES: 'api-extensions' });
    expect(byName('gadgets')).toMatchObject({
      VERBS: 'delete,deletecollection,get,list,patch,create,update,watch',
      CATEGORIES: 'all,tools',
    });
  });

  it('sorts', async () => {
    const kinds = (await rows('--sort-by=kind')).map((each) => each['KIND'] ?? '');
    expect(kinds).toEqual([...kinds].sort());
  });
});

describe('api-versions', () => {
  it('lists every group and version that is served', async () => {
    const versions = lines(await kubectl.ok('api-versions'));
    expect(versions).toEqual([...versions].sort());
    expect(versions).toEqual(
      expect.arrayContaining([
        'admissionregistration.k8s.io/v1',
        'apiextensions.k8s.io/v1',
        'apiregistration.k8s.io/v1',
        'apps/v1',
        'authentication.k8s.io/v1',
        'authorization.k8s.io/v1',
        'batch/v1',
        'certificates.k8s.io/v1',
        'coordination.k8s.io/v1',
        `${GROUP}/v1`,
        `${GROUP}/v1beta1`,
        'events.k8s.io/v1',
        'policy/v1',
        'rbac.authorization.k8s.io/v1',
        'scheduling.k8s.io/v1',
        'storage.k8s.io/v1',
        'v1',
      ]),
    );
  });
});

describe('explain', () => {
  it('documents a built-in kind', async () => {
    const text = await kubectl.ok('explain pods');
    expect(text).toMatch(/^KIND: +Pod\nVERSION: +v1\n\nDESCRIPTION:\n {4}\S/);
    for (const field of [
      'apiVersion\t<string>',
      'kind\t<string>',
      'metadata\t<ObjectMeta>',
      'spec\t<PodSpec>',
      'status\t<PodStatus>',
    ])
      expect(text).toContain(`\n  ${field}\n    `);
  });

  it('documents a field, its type and what is required and allowed', async () => {
    const text = await kubectl.ok('explain po.spec.containers');
    expect(text).toMatch(/^KIND: +Pod\nVERSION: +v1\n\nFIELD: containers <\[\]Container>\n/);
    expect(text).toContain('\n  name\t<string> -required-\n');
    expect(text).toContain('\n  env\t<[]EnvVar>\n');
    expect(text).toMatch(/\n {2}imagePullPolicy\t<string>\n {2}enum: Always, IfNotPresent, Never\n {4}\S/);
    expect(await kubectl.ok('explain deployment.spec.template.spec.containers.resources.limits')).toMatch(
      /^GROUP: +apps\nKIND: +Deployment\nVERSION: +v1\n\nFIELD: limits <map\[string\]Quantity>\n/,
    );
  });

  it('goes into every field when told to', async () => {
    const text = await kubectl.ok('explain pods.spec --recursive');
    expect(text).toContain('\n  containers\t<[]Container> -required-\n    args\t<[]string>\n    command\t<[]string>\n');
    expect(text).toContain('\n      valueFrom\t<EnvVarSource>\n');
    expect(text).toContain('\n  tolerations\t<[]Toleration>\n');
    expect(text).not.toContain('<no description>');
  });

  it('ends where a kind contains itself', async () => {
    const text = await kubectl.ok('explain crd --recursive');
    expect(text).toContain('\n        openAPIV3Schema\t<JSONSchemaProps>\n');
    expect(text).toContain('\n          properties\t<map[string]JSONSchemaProps>\n');
    expect(lines(text).length).toBeLessThan(200);
  });

  it("documents a custom resource's fields as its definition does", async () => {
    expect(await kubectl.ok('explain gadgets')).toMatch(
      new RegExp(`^GROUP: +${GROUP}\nKIND: +Gadget\nVERSION: +v1\n\nDESCRIPTION:\n {4}A gadget does things\\.\n`),
    );
    const text = await kubectl.ok('explain gdt.spec');
    expect(text).toContain('FIELD: spec <Object>\n\n\nDESCRIPTION:\n    What the gadget is to be.\n');
    expect(text).toContain('\n  size\t<integer> -required-\n    How big the gadget is.\n');
    expect(text).toContain('\n  colour\t<string>\n  enum: red, blue\n    Its colour.\n');
    expect(await kubectl.ok('explain gadgets.spec.parts --recursive')).toContain(
      'FIELDS:\n  name\t<string> -required-\n  weight\t<number>\n',
    );
    expect(await kubectl.ok('explain gadgets.metadata.labels')).toContain('FIELD: labels <map[string]string>');
  });

  it('documents the version that is asked for', async () => {
    const text = await kubectl.ok(`explain gadgets.spec --api-version=${GROUP}/v1beta1`);
    expect(text).toMatch(/\nVERSION: +v1beta1\n/);
    expect(text).toContain('  size\t<integer>\n    The former size.\n');
    expect(text).not.toContain('colour');
    expect(await kubectl.fails(`explain gadgets --api-version=${GROUP}/v7`)).toContain(
      `couldn't find resource for "${GROUP}/v7, Resource=gadgets"`,
    );
  });

  it('says what does not exist', async () => {
    expect(await kubectl.fails('explain pods.spec.containers.bogus')).toBe(
      'error: field "bogus" does not exist\nKIND:       Pod\nVERSION:    v1\n\n',
    );
    expect(await kubectl.fails('explain gadgets.spec.size.more')).toContain('error: field "more" does not exist');
    expect(await kubectl.fails('explain nothing')).toBe(`the server doesn't have a resource type "nothing"\n`);
  });

  it('reads the older OpenAPI as well', async () => {
    if (!kubectlHas(27, 'explain --output=plaintext-openapiv2')) return;
    const pod = await kubectl.ok('explain pods.spec.containers.resources --output=plaintext-openapiv2');
    expect(pod).toMatch(/^KIND: +Pod\nVERSION: +v1\n\nRESOURCE: resources <Object>\n/);
    expect(pod).toContain('\n   limits\t<map[string]string>\n');
    const gadget = await kubectl.ok('explain gadgets.spec --output=plaintext-openapiv2');
    expect(gadget).toMatch(new RegExp(`^KIND: +Gadget\nVERSION: +${GROUP}/v1\n\nRESOURCE: spec <Object>\n`));
    expect(gadget).toContain('\n   size\t<integer> -required-\n     How big the gadget is.\n');
  });
});

describe('get --raw', () => {
  it('shows what no kind stands for', async () => {
    expect(await kubectl.ok('get --raw /healthz')).toBe('ok');
    expect(await kubectl.ok('get --raw /readyz/ping')).toBe('ok');
    const verbose = await kubectl.ok('get --raw /readyz?verbose');
    expect(verbose).toContain('[+]ping ok\n');
    expect(verbose.endsWith('readyz check passed\n')).toBe(true);
    expect(await kubectl.ok('get --raw /livez?verbose')).toMatch(/livez check passed\n$/);
    expect(await kubectl.ok('get --raw /metrics')).toContain('apiserver_request_total{');
    expect(JSON.parse(await kubectl.ok('get --raw /apis/apps')).preferredVersion).toEqual({
      groupVersion: 'apps/v1',
      version: 'v1',
    });
    const { paths } = JSON.parse(await kubectl.ok('get --raw /'));
    expect(paths).toEqual(
      expect.arrayContaining(['/api', '/api/v1', '/apis', `/apis/${GROUP}/v1`, '/healthz', '/version']),
    );
  });

  it('says what is not there', async () => {
    expect(await kubectl.fails('get --raw /nonsense')).toBe(
      'Error from server (NotFound): the server could not find the requested resource\n',
    );
    expect(await kubectl.fails('get --raw /api/v1/namespaces/default/pods/nobody')).toBe(
      'Error from server (NotFound): pods "nobody" not found\n',
    );
  });
});
