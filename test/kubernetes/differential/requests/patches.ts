import {
  apply,
  get,
  type Group,
  inNamespace,
  jsonPatch,
  mergePatch,
  post,
  refused,
  silently,
  strategicPatch,
} from '../request.ts';

const MAPS = '/api/v1/namespaces/$ns/configmaps';
const ONE = `${MAPS}/one`;
const DEPLOYMENTS = '/apis/apps/v1/namespaces/$ns/deployments';
const PODS = '/api/v1/namespaces/$ns/pods';
const deployment = {
  metadata: { name: 'web', labels: { app: 'web' } },
  spec: {
    // Whoever makes replicas of it would change it while we look.
    paused: true,
    replicas: 0,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        containers: [
          {
            name: 'first',
            image: 'example.org/first:1',
            env: [{ name: 'A', value: '1' }],
            ports: [{ containerPort: 80 }],
          },
          { name: 'second', image: 'example.org/second:1' },
        ],
        tolerations: [{ key: 'a', operator: 'Exists' }],
      },
    },
  },
};
const WEB = `${DEPLOYMENTS}/web`;
/** Controllers write to it as well. */
const spec = {
  view: ({
    spec,
    metadata: { labels, annotations },
  }: {
    spec: unknown;
    metadata: { labels?: unknown; annotations?: unknown };
  }) => ({ spec, labels, annotations }),
};

export const PATCHES: Group = {
  name: 'patches',
  requests: inNamespace([
    post(
      'makes a map',
      MAPS,
      { metadata: { name: 'one', labels: { a: 'b' } }, data: { a: '1', b: '2' } },
      { save: 'one' },
    ),
    jsonPatch('adds', ONE, [{ op: 'add', path: '/data/c', value: '3' }]),
    jsonPatch('replaces', ONE, [{ op: 'replace', path: '/data/a', value: '9' }]),
    jsonPatch('removes', ONE, [{ op: 'remove', path: '/data/b' }]),
    jsonPatch('moves', ONE, [{ op: 'move', from: '/data/c', path: '/data/d' }]),
    jsonPatch('copies', ONE, [{ op: 'copy', from: '/data/d', path: '/data/e' }]),
    jsonPatch('tests what holds', ONE, [{ op: 'test', path: '/data/a', value: '9' }]),
    refused(422).jsonPatch('tests what does not hold', ONE, [{ op: 'test', path: '/data/a', value: '1' }]),
    refused(422).jsonPatch('tests what is not there', ONE, [{ op: 'test', path: '/data/nothing', value: '1' }]),
    refused(422).jsonPatch('removes what is not there', ONE, [{ op: 'remove', path: '/data/nothing' }]),
    jsonPatch('replaces what is not there', ONE, [{ op: 'replace', path: '/data/nothing', value: 'x' }]),
    refused(422).jsonPatch('adds below what is not there', ONE, [{ op: 'add', path: '/nothing/below', value: 'x' }]),
    jsonPatch('adds a label with a slash', ONE, [{ op: 'add', path: '/metadata/labels/example.org~1x', value: 'y' }]),
    refused(422).jsonPatch('does something unknown', ONE, [{ op: 'unknown', path: '/data/a' }]),
    jsonPatch('does nothing', ONE, []),
    refused(400).jsonPatch('is no list', ONE, { op: 'add' }),
    refused(400).jsonPatch('is bad JSON', ONE, '[{'),
    jsonPatch('adds no value', ONE, [{ op: 'add', path: '/data/z' }]),
    refused(422).jsonPatch('adds a number', ONE, [{ op: 'add', path: '/data/number', value: 5 }]),
    jsonPatch('adds an unknown field', ONE, [{ op: 'add', path: '/unknown', value: 5 }]),
    refused(422).jsonPatch('adds an unknown field, strictly', `${ONE}?fieldValidation=Strict`, [
      { op: 'add', path: '/unknown', value: 5 },
    ]),
    jsonPatch('has an unknown member, strictly', `${ONE}?fieldValidation=Strict&dryRun=All`, [
      { op: 'add', path: '/data/s', value: 's', more: 1 },
    ]),
    refused(400).jsonPatch('changes the name', ONE, [{ op: 'replace', path: '/metadata/name', value: 'other' }]),
    refused(409).jsonPatch('takes an old version', ONE, [
      { op: 'replace', path: '/metadata/resourceVersion', value: '{{one.metadata.resourceVersion}}' },
    ]),
    refused(422).jsonPatch('changes the uid', ONE, [
      { op: 'replace', path: '/metadata/uid', value: '11111111-2222-3333-4444-555555555555' },
    ]),
    refused(413).jsonPatch(
      'has too many steps',
      ONE,
      Array.from({ length: 10001 }, () => ({ op: 'test', path: '/data/a', value: '9' })),
    ),
    refused(404).jsonPatch('patches what is not there', `${MAPS}/nothing`, [{ op: 'add', path: '/data', value: {} }]),
    mergePatch('merges', ONE, { data: { a: '10', new: 'x' } }),
    mergePatch('merges with null', ONE, { data: { new: null, nothing: null } }),
    mergePatch('merges nothing', ONE, {}),
    mergePatch('replaces all data', ONE, { data: null }),
    refused(400).mergePatch('merges a list', ONE, []),
    refused(400).mergePatch('merges bad JSON', ONE, '{'),
    refused(422).mergePatch('merges with the wrong type', ONE, { data: 'x' }),
    refused(409).mergePatch('merges with an old version', ONE, {
      metadata: { resourceVersion: '{{one.metadata.resourceVersion}}' },
      data: { a: 'x' },
    }),
    mergePatch('merges another kind', ONE, { kind: 'Secret' }),
    mergePatch('merges another version', ONE, { apiVersion: 'v2' }),
    refused(422).mergePatch('merges a bad label', ONE, { metadata: { labels: { a: 'not ok!' } } }),
    mergePatch('merges an unknown field with a warning', `${ONE}?fieldValidation=Warn`, { unknown: 1 }),
    mergePatch('rehearses', `${ONE}?dryRun=All`, { data: { rehearsed: 'yes' } }),
    mergePatch('is for a manager', `${ONE}?fieldManager=other`, { data: { theirs: 'yes' } }),
    refused(422).mergePatch('is forced', `${ONE}?force=true`, { data: { forced: 'yes' } }),
    mergePatch('removes all labels', ONE, { metadata: { labels: null } }),
    mergePatch('removes what the manager wrote', `${ONE}?fieldManager=third`, { data: { theirs: null } }),
    strategicPatch('merges a map', ONE, { data: { strategic: 'yes', forced: null } }),
    silently(post('makes a deployment', DEPLOYMENTS, deployment)),
    get('the deployment', WEB, spec),
    strategicPatch(
      'merges a container',
      WEB,
      { spec: { template: { spec: { containers: [{ name: 'first', image: 'example.org/first:2' }] } } } },
      spec,
    ),
    strategicPatch(
      'adds a container',
      WEB,
      { spec: { template: { spec: { containers: [{ name: 'third', image: 'example.org/third:1' }] } } } },
      spec,
    ),
    strategicPatch(
      'deletes a container',
      WEB,
      { spec: { template: { spec: { containers: [{ name: 'third', $patch: 'delete' }] } } } },
      spec,
    ),
    strategicPatch(
      'orders containers',
      WEB,
      { spec: { template: { spec: { '$setElementOrder/containers': [{ name: 'second' }, { name: 'first' }] } } } },
      spec,
    ),
    strategicPatch(
      'merges variables',
      WEB,
      {
        spec: {
          template: {
            spec: {
              containers: [
                {
                  name: 'first',
                  env: [
                    { name: 'B', value: '2' },
                    { name: 'A', $patch: 'delete' },
                  ],
                },
              ],
            },
          },
        },
      },
      spec,
    ),
    strategicPatch(
      'replaces a list',
      WEB,
      { spec: { template: { spec: { tolerations: [{ key: 'b', operator: 'Exists' }] } } } },
      spec,
    ),
    strategicPatch(
      'replaces a map',
      WEB,
      {
        spec: {
          template: {
            spec: { containers: [{ name: 'first', env: [{ $patch: 'replace' }, { name: 'C', value: '3' }] }] },
          },
        },
      },
      spec,
    ),
    strategicPatch('keeps some keys', WEB, { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } }, spec),
    strategicPatch('does something unknown to a container', WEB, {
      spec: { template: { spec: { containers: [{ name: 'first', $patch: 'unknown' }] } } },
    }),
    strategicPatch('merges without its key', WEB, { spec: { template: { spec: { containers: [{ image: 'x' }] } } } }),
    refused(422).strategicPatch('merges what is no list', WEB, { spec: { template: { spec: { containers: {} } } } }),
    strategicPatch('deletes a field', WEB, { spec: { template: { spec: { tolerations: null } } } }, spec),
    refused(422).strategicPatch('changes what is immutable', WEB, {
      spec: { selector: { matchLabels: { app: 'other' } } },
    }),
    strategicPatch('adds a finalizer', ONE, { metadata: { finalizers: ['example.org/a'] } }),
    strategicPatch('adds another finalizer', ONE, { metadata: { finalizers: ['example.org/b'] } }),
    strategicPatch('deletes one finalizer', ONE, {
      metadata: { '$deleteFromPrimitiveList/finalizers': ['example.org/a'] },
    }),
    strategicPatch('deletes the other', ONE, { metadata: { finalizers: null } }),
    strategicPatch('replaces everything', ONE, {
      $patch: 'replace',
      metadata: { name: 'one' },
      data: { only: 'this' },
    }),
    refused(404).jsonPatch('changes a pod in vain', `${PODS}/nothing`, [{ op: 'add', path: '/a', value: 1 }]),
    apply('applies what is not there', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { a: '1', b: '2' },
    }),
    apply('applies it again', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { a: '1', b: '2' },
    }),
    apply('leaves one out', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { a: '1' },
    }),
    refused(409).apply('is in conflict', `${MAPS}/applied?fieldManager=you`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { a: '2' },
    }),
    apply('agrees', `${MAPS}/applied?fieldManager=you`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { a: '1', c: '3' },
    }),
    apply('gives up what is shared', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
    }),
    apply('adds for a third', `${MAPS}/applied?fieldManager=third`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { d: '4' },
    }),
    refused(409).apply('is in two conflicts', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { a: '5', c: '5', d: '5' },
    }),
    apply('applies by force', `${MAPS}/applied?fieldManager=me&force=true`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { a: '5', c: '5' },
    }),
    mergePatch('updates what was applied', `${MAPS}/applied?fieldManager=hand`, { data: { a: '6' } }),
    refused(409).apply('is in conflict with an update', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { a: '7' },
    }),
    refused(422).apply('has no manager', `${MAPS}/applied`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
    }),
    refused(400).apply('has no kind', `${MAPS}/applied?fieldManager=me`, { metadata: { name: 'applied' } }),
    refused(400).apply('has another kind', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'applied' },
    }),
    refused(400).apply('has another name', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'other' },
    }),
    refused(400).apply('has no name', `${MAPS}/applied-2?fieldManager=me`, { apiVersion: 'v1', kind: 'ConfigMap' }),
    refused(400).apply('has managed fields', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'applied',
        managedFields: [{ manager: 'x', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} }],
      },
    }),
    apply('has an unknown field', `${MAPS}/applied?fieldManager=me&force=true`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      unknown: 1,
    }),
    apply(
      'is YAML',
      `${MAPS}/yaml?fieldManager=me`,
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: "1"\n',
    ),
    refused(400).apply('is bad YAML', `${MAPS}/yaml?fieldManager=me`, 'a: [\n'),
    apply(
      'is YAML with a key twice',
      `${MAPS}/yaml?fieldManager=me`,
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: "1"\n  a: "2"\n',
    ),
    refused(409).apply('has a uid for what is not there', `${MAPS}/identified?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'identified', uid: '11111111-2222-3333-4444-555555555555' },
    }),
    refused(409).apply('has an old version', `${MAPS}/applied?fieldManager=me&force=true`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied', resourceVersion: '1' },
      data: { a: 'old' },
    }),
    apply('rehearses to apply', `${MAPS}/rehearsed?fieldManager=me&dryRun=All`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'rehearsed' },
    }),
    mergePatch('removes all managers', `${MAPS}/applied`, { metadata: { managedFields: [{}] } }),
    refused(409).apply('applies after that', `${MAPS}/applied?fieldManager=me`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'applied' },
      data: { a: '8' },
    }),
    apply(
      'applies a deployment',
      `${DEPLOYMENTS}/ssa?fieldManager=me`,
      { apiVersion: 'apps/v1', kind: 'Deployment', ...deployment, metadata: { name: 'ssa' } },
      spec,
    ),
    apply(
      'applies another image',
      `${DEPLOYMENTS}/ssa?fieldManager=you&force=true`,
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'ssa' },
        spec: { template: { spec: { containers: [{ name: 'first', image: 'example.org/first:9' }] } } },
      },
      spec,
    ),
    apply('applies a container twice', `${DEPLOYMENTS}/ssa?fieldManager=me`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'ssa' },
      spec: { template: { spec: { containers: [{ name: 'first' }, { name: 'first' }] } } },
    }),
    refused(422).apply('applies a container without a name', `${DEPLOYMENTS}/ssa?fieldManager=me`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'ssa' },
      spec: { template: { spec: { containers: [{ image: 'x' }] } } },
    }),
    apply('applies the wrong type', `${DEPLOYMENTS}/ssa?fieldManager=me`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'ssa' },
      spec: { replicas: 'x' },
    }),
    apply('applies an unknown field of a deployment', `${DEPLOYMENTS}/ssa?fieldManager=me`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'ssa' },
      spec: { unknown: 'x' },
    }),
  ]),
};
