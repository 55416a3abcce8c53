import {
  apply,
  get,
  type Group,
  inNamespace,
  jsonPatch,
  mergePatch,
  post,
  put,
  refused,
  remove,
  silently,
  watch,
} from '../request.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
/** Definitions belong to the whole cluster, so their group has the name of this run. */
const GROUP = '$ns.example.org';
const WIDGETS = `/apis/${GROUP}/v1/namespaces/$ns/widgets`;
const ONE = `${WIDGETS}/one`;
const TABLE = { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } };
const names = (plural: string, kind: string): object => ({
  plural,
  singular: kind.toLowerCase(),
  kind,
  listKind: `${kind}List`,
  shortNames: [plural.slice(0, 2)],
  categories: ['all'],
});
const schema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'integer', minimum: 1, maximum: 10, description: 'How large it is.' },
        color: { type: 'string', enum: ['red', 'green'], default: 'red' },
        code: { type: 'string', pattern: '^[a-z]+$', maxLength: 5, minLength: 2 },
        ratio: { type: 'number', multipleOf: 0.5, exclusiveMinimum: true, minimum: 0 },
        replicas: { type: 'integer', default: 1 },
        amount: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set', maxItems: 3 },
        parts: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: { type: 'string' }, count: { type: 'integer', default: 7 } },
          },
        },
        fixed: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'is fixed' }] },
        when: { type: 'string', format: 'date-time' },
        maybe: { type: 'string', nullable: true },
        map: { type: 'object', additionalProperties: { type: 'integer' }, maxProperties: 2 },
      },
      'x-kubernetes-validations': [
        { rule: '!has(self.code) || self.size > 1', message: 'coded ones are larger' },
        {
          rule: 'self.size != 9',
          messageExpression: "'nine is too many'",
          reason: 'FieldValueForbidden',
          fieldPath: '.size',
        },
      ],
    },
    status: {
      type: 'object',
      properties: { phase: { type: 'string' }, replicas: { type: 'integer' }, selector: { type: 'string' } },
    },
  },
};
const version = (name: string, storage: boolean, more: object = {}): object => ({
  name,
  served: true,
  storage,
  schema: { openAPIV3Schema: schema },
  subresources: {
    status: {},
    scale: {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    },
  },
  additionalPrinterColumns: [
    { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
    { name: 'Color', type: 'string', jsonPath: '.spec.color', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: [{ jsonPath: '.spec.color' }],
  ...more,
});
const crd = (plural: string, kind: string, more: object = {}): object => ({
  metadata: { name: `${plural}.${GROUP}` },
  spec: { group: GROUP, scope: 'Namespaced', names: names(plural, kind), versions: [version('v1', true)], ...more },
});
const widget = (name: string, spec: object = {}, more: object = {}): object => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Widget',
  metadata: { name },
  spec: { size: 1, ...spec },
  ...more,
});
const bad = (name: string, spec: object): ReturnType<typeof post> =>
  refused(422).post(`has ${name}`, WIDGETS, widget('bad', spec));
const badSchema = (name: string, openAPIV3Schema: object, more: object = {}): ReturnType<typeof post> =>
  refused(422).post(
    `defines ${name}`,
    CRDS,
    crd('bads', 'Bad', {
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema }, ...more }],
    }),
  );

export const CUSTOM_RESOURCES: Group = {
  name: 'custom resources',
  requests: inNamespace([
    post('defines widgets', CRDS, crd('widgets', 'Widget'), {
      view: ({ metadata: { name, generation }, spec }) => ({ name, generation, spec }),
    }),
    get('waits for widgets', `${CRDS}/widgets.${GROUP}`, {
      until: ({ body }) =>
        body.status?.conditions?.some(
          ({ type, status }: { type: string; status: string }) => type === 'Established' && status === 'True',
        ),
      view: ({ status }) => status,
    }),
    silently(get('waits for the path', WIDGETS, { until: ({ status }) => status === 200 })),
    get('as a table', `${CRDS}/widgets.${GROUP}`, {
      ...TABLE,
      view: ({ columnDefinitions, rows }) => [columnDefinitions, rows[0].cells.length],
    }),
    get('what is in their group', `/apis/${GROUP}/v1`, {
      view: (body) => ({
        ...body,
        resources: body.resources.map((resource: object) => ({ ...resource, storageVersionHash: '' })),
      }),
    }),
    get('the group', `/apis/${GROUP}`),
    post('makes one', WIDGETS, widget('one'), { save: 'one' }),
    post(
      'makes one with much',
      WIDGETS,
      widget(
        'much',
        {
          size: 2,
          code: 'abc',
          ratio: 1.5,
          amount: '5',
          free: { any: [1, null, 'x'] },
          tags: ['a', 'b'],
          parts: [{ name: 'a' }, { name: 'b', count: 2 }],
          fixed: 'x',
          when: '2001-01-01T00:00:00Z',
          maybe: null,
          map: { a: 1 },
        },
        { status: { phase: 'ignored' } },
      ),
    ),
    get('gets one', ONE),
    refused(404).get('gets what is not there', `${WIDGETS}/nothing`),
    get('lists', WIDGETS),
    get('lists as a table', WIDGETS, TABLE),
    get('lists by a field', `${WIDGETS}?fieldSelector=spec.color%3Dred`, { view: ({ items }) => items.length }),
    refused(400).get('lists by an unknown field', `${WIDGETS}?fieldSelector=spec.size%3D1`),
    refused(406).get('gets as protobuf', ONE, { headers: { accept: 'application/vnd.kubernetes.protobuf' } }),
    get('gets its metadata', ONE, {
      headers: { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
    }),
    bad('no size', { size: undefined }),
    bad('a size that is too small', { size: 0 }),
    bad('a size that is too large', { size: 11 }),
    bad('a size that is text', { size: 'x' }),
    bad('a size that is a fraction', { size: 1.5 }),
    bad('a color that is unknown', { color: 'blue' }),
    bad('a code that is bad', { size: 2, code: 'A' }),
    bad('a code that is long', { size: 2, code: 'abcdefg' }),
    bad('a ratio that is bad', { ratio: 0.3 }),
    bad('a ratio that is nothing', { ratio: 0 }),
    bad('an amount that is a list', { amount: [] }),
    bad('a tag twice', { tags: ['a', 'a'] }),
    bad('many tags', { tags: ['a', 'b', 'c', 'd'] }),
    bad('a part twice', { parts: [{ name: 'a' }, { name: 'a' }] }),
    bad('a part without a name', { parts: [{ count: 1 }] }),
    bad('a time that is bad', { when: 'noon' }),
    post('has null for what is not nullable', WIDGETS, widget('bad', { code: null })),
    bad('a map of texts', { map: { a: 'x' } }),
    bad('a large map', { map: { a: 1, b: 2, c: 3 } }),
    bad('a code and no size', { code: 'abc' }),
    bad('a size of nine', { size: 9 }),
    bad('much that is bad', { size: 0, color: 'blue', tags: ['a', 'a'], code: 'A' }),
    post('has an unknown field', WIDGETS, widget('unknown', { unknown: 1 })),
    refused(400).post(
      'has an unknown field, strictly',
      `${WIDGETS}?fieldValidation=Strict`,
      widget('strict', { unknown: 1, parts: [{ name: 'a', unknown: 2 }] }, { more: 1 }),
    ),
    refused(400).post(
      'has a field twice, strictly',
      `${WIDGETS}?fieldValidation=Strict`,
      `{"apiVersion":"${GROUP}/v1","kind":"Widget","metadata":{"name":"strict"},"spec":{"size":1,"size":2}}`,
    ),
    post('has no kind', WIDGETS, { metadata: { name: 'bare' }, spec: { size: 1 } }),
    post('has another kind', WIDGETS, { ...widget('other'), kind: 'Gadget' }),
    refused(400).post('has another version', WIDGETS, { ...widget('other'), apiVersion: `${GROUP}/v9` }),
    refused(422).post('has no spec', WIDGETS, {
      apiVersion: `${GROUP}/v1`,
      kind: 'Widget',
      metadata: { name: 'bare' },
    }),
    refused(422).post('has a spec that is a list', WIDGETS, {
      apiVersion: `${GROUP}/v1`,
      kind: 'Widget',
      metadata: { name: 'bare' },
      spec: [],
    }),
    refused(400).post('has bad labels', WIDGETS, { ...widget('bad'), metadata: { name: 'bad', labels: { a: 5 } } }),
    refused(422).post('has a bad name', WIDGETS, widget('Bad_Name')),
    post('is YAML', WIDGETS, `apiVersion: ${GROUP}/v1\nkind: Widget\nmetadata:\n  name: yaml\nspec:\n  size: 3\n`, {
      headers: { 'content-type': 'application/yaml' },
    }),
    refused(422).put('replaces without a version', ONE, widget('one', { size: 2 })),
    put(
      'replaces',
      ONE,
      {
        ...widget('one', { size: 2 }),
        metadata: { name: 'one', resourceVersion: '{{one.metadata.resourceVersion}}' },
      },
      { save: 'two' },
    ),
    refused(409).put('replaces with an old version', ONE, {
      ...widget('one', { size: 3 }),
      metadata: { name: 'one', resourceVersion: '{{one.metadata.resourceVersion}}' },
    }),
    put('replaces with the same', ONE, {
      ...widget('one', { size: 2 }),
      metadata: { name: 'one', resourceVersion: '{{two.metadata.resourceVersion}}' },
    }),
    mergePatch('merges', ONE, { spec: { tags: ['x'], fixed: 'a' } }),
    refused(422).mergePatch('changes what is fixed', ONE, { spec: { fixed: 'b' } }),
    mergePatch('changes the status beside', ONE, { status: { phase: 'x' } }),
    mergePatch('changes the status', `${ONE}/status`, {
      status: { phase: 'Ready', replicas: 3, selector: 'a=b' },
      spec: { size: 5 },
    }),
    refused(422).mergePatch('makes the status bad', `${ONE}/status`, { status: { replicas: 'x' } }),
    refused(422).mergePatch('makes it bad', ONE, { spec: { size: 0 } }),
    jsonPatch('patches', ONE, [{ op: 'add', path: '/spec/tags/-', value: 'y' }]),
    refused(415).strategicPatch('patches in a strategic way', ONE, { spec: { size: 4 } }),
    get('gets its scale', `${ONE}/scale`),
    put('scales', `${ONE}/scale`, {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'one' },
      spec: { replicas: 4 },
    }),
    mergePatch('scales by a patch', `${ONE}/scale`, { spec: { replicas: 5 } }),
    refused(422).mergePatch('scales below zero', `${ONE}/scale`, { spec: { replicas: -1 } }),
    get('gets what was scaled', ONE, { view: ({ spec, metadata: { generation } }) => [spec, generation] }),
    apply('applies', `${WIDGETS}/applied?fieldManager=me`, widget('applied', { parts: [{ name: 'a' }], tags: ['a'] })),
    apply(
      'applies for another',
      `${WIDGETS}/applied?fieldManager=you`,
      widget('applied', { parts: [{ name: 'b', count: 1 }], tags: ['b'] }),
    ),
    refused(409).apply(
      'is in conflict',
      `${WIDGETS}/applied?fieldManager=you`,
      widget('applied', { size: 3, parts: [{ name: 'a', count: 9 }] }),
    ),
    apply('is forced', `${WIDGETS}/applied?fieldManager=you&force=true`, widget('applied', { size: 3 })),
    apply(
      'applies an unknown field',
      `${WIDGETS}/applied?fieldManager=me&force=true`,
      widget('applied', { unknown: 1 }),
    ),
    refused(422).apply(
      'applies what is bad',
      `${WIDGETS}/applied?fieldManager=me&force=true`,
      widget('applied', { size: 0 }),
    ),
    apply('applies a status', `${WIDGETS}/applied/status?fieldManager=me`, {
      apiVersion: `${GROUP}/v1`,
      kind: 'Widget',
      metadata: { name: 'applied' },
      status: { phase: 'x' },
    }),
    watch(
      'watches',
      `${WIDGETS}?watch=true&fieldSelector=metadata.name%3Done&resourceVersion={{one.metadata.resourceVersion}}`,
      2,
    ),
    remove('deletes', ONE),
    remove('deletes all', WIDGETS, undefined, { view: ({ kind, items }) => [kind, items?.length] }),
    refused(422).mergePatch('changes their group', `${CRDS}/widgets.${GROUP}`, {
      spec: { group: 'other.example.org' },
    }),
    refused(422).mergePatch('changes their scope', `${CRDS}/widgets.${GROUP}`, { spec: { scope: 'Cluster' } }),
    refused(422).mergePatch(
      'changes their kind',
      `${CRDS}/widgets.${GROUP}`,
      { spec: { names: { kind: 'Other' } } },
      { view: ({ spec: { names } }) => names },
    ),
    badSchema('no type', { properties: {} }),
    badSchema('no properties', { type: 'object' }, { served: false }),
    badSchema('a default that does not fit', { type: 'object', properties: { a: { type: 'string', default: 5 } } }),
    badSchema('a reference', { type: 'object', properties: { a: { $ref: '#/x' } } }),
    badSchema('an array without items', { type: 'object', properties: { a: { type: 'array' } } }),
    badSchema('a bad type', { type: 'object', properties: { a: { type: 'odd' } } }),
    badSchema('a rule that does not compile', {
      type: 'object',
      properties: { a: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self +' }] } },
    }),
    badSchema('a rule of another type', {
      type: 'object',
      properties: { a: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self' }] } },
    }),
    badSchema('a rule about nothing', {
      type: 'object',
      properties: {
        a: {
          type: 'object',
          properties: { b: { type: 'string' } },
          'x-kubernetes-validations': [{ rule: 'self.c == 1' }],
        },
      },
    }),
    badSchema('a rule that costs too much', {
      type: 'object',
      properties: {
        a: {
          type: 'array',
          items: { type: 'string' },
          'x-kubernetes-validations': [{ rule: 'self.all(x, self.all(y, x == y))' }],
        },
      },
    }),
    badSchema('a pattern that is bad', { type: 'object', properties: { a: { type: 'string', pattern: '(' } } }),
    badSchema(
      'a bad column',
      { type: 'object' },
      { additionalPrinterColumns: [{ name: '', type: 'odd', jsonPath: 'x' }] },
    ),
    badSchema(
      'a bad scale',
      { type: 'object' },
      { subresources: { scale: { specReplicasPath: 'x', statusReplicasPath: '' } } },
    ),
    badSchema('a forbidden word', {
      type: 'object',
      uniqueItems: true,
      properties: { a: { type: 'array', uniqueItems: true, items: { type: 'string' } } },
    }),
    badSchema('a list map without keys', {
      type: 'object',
      properties: { a: { type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } } },
    }),
    badSchema('a bad version', { type: 'object' }, { name: 'V_1' }),
    refused(422).post('defines without versions', CRDS, crd('bads', 'Bad', { versions: [] })),
    refused(422).post(
      'defines two storages',
      CRDS,
      crd('bads', 'Bad', { versions: [version('v1', true), version('v2', true)] }),
    ),
    refused(422).post('defines with another name', CRDS, { ...crd('bads', 'Bad'), metadata: { name: 'other' } }),
    refused(422).post('defines with a bad scope', CRDS, crd('bads', 'Bad', { scope: 'Odd' })),
    refused(422).post('defines with bad names', CRDS, crd('bads', 'Bad', { names: { plural: 'Bads_', kind: '1' } })),
    refused(422).post(
      'defines without a schema',
      CRDS,
      crd('bads', 'Bad', { versions: [{ name: 'v1', served: true, storage: true }] }),
    ),
    refused(422).post('defines in a group of Kubernetes', CRDS, {
      metadata: { name: 'bads.x.k8s.io' },
      spec: { group: 'x.k8s.io', scope: 'Cluster', names: names('bads', 'Bad'), versions: [version('v1', true)] },
    }),
    remove('takes widgets away', `${CRDS}/widgets.${GROUP}`, undefined, { view: ({ kind }) => kind }),
  ]),
};
