import { describe, expect, it } from 'vitest';
import { builtinDefinitions } from '../../api/kinds/builtins.ts';
import type { Json } from '../../api/meta.ts';
import { describeTimeError } from './time.ts';
import { findMismatch } from './shape.ts';

/** The sentences are kube-apiserver 1.34's, seen there for the same bodies. */
const CASES: readonly [kind: string, object: Json, sentence: string | undefined][] = [
  ['ConfigMap', { data: { k: 'v' }, metadata: { labels: { a: 'b' } } }, undefined],
  ['ConfigMap', { data: { k: 1 } }, 'json: cannot unmarshal number into Go struct field ConfigMap.data of type string'],
  [
    'ConfigMap',
    { data: 'x' },
    'json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string',
  ],
  [
    'Pod',
    { spec: { containers: [{ image: 5 }] } },
    'json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string',
  ],
  [
    'Pod',
    { spec: { containers: {} } },
    'json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container',
  ],
  [
    'Pod',
    { spec: { containers: ['a'] } },
    'json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type v1.Container',
  ],
  ['Pod', { spec: 'x' }, 'json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec'],
  [
    'Pod',
    { spec: { hostNetwork: 'yes' } },
    'json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool',
  ],
  [
    'Pod',
    { spec: { priority: 1.5 } },
    'json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32',
  ],
  [
    'Pod',
    { spec: { priority: 99999999999 } },
    'json: cannot unmarshal number 99999999999 into Go struct field PodSpec.spec.priority of type int32',
  ],
  [
    'Pod',
    { spec: { containers: [{ resources: { limits: { cpu: 'x' } } }] } },
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  ['Pod', { spec: { containers: [{ resources: { limits: { cpu: 0.5 } } }] } }, undefined],
  [
    'Pod',
    { spec: { containers: [{ livenessProbe: { httpGet: { port: true } } }] } },
    'json: cannot unmarshal bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.httpGet.port of type int32',
  ],
  ['Secret', { data: { a: '!!' } }, 'illegal base64 data at input byte 0'],
  ['Secret', { data: { a: 'YWJjZ' } }, 'illegal base64 data at input byte 4'],
  [
    'Deployment',
    { spec: { template: { spec: { containers: [{ env: [{ value: 2 }] }] } } } },
    'json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string',
  ],
  [
    'Node',
    { spec: { taints: [{ timeAdded: 'x' }] } },
    'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
  ],
  [
    'Lease',
    { spec: { renewTime: '2020-01-01T00:00:00Z' } },
    'parsing time "2020-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
  ],
  [
    'Lease',
    { spec: { renewTime: '2020-01-01T00:00:00.123456789Z' } },
    'parsing time "2020-01-01T00:00:00.123456789Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "789Z" as "Z07:00"',
  ],
  [
    'PodDisruptionBudget',
    { spec: { minAvailable: 1.5 } },
    'json: cannot unmarshal number 1.5 into Go struct field PodDisruptionBudgetSpec.spec.minAvailable of type int32',
  ],
];

describe('a value of the wrong type', () => {
  it.each(CASES)('of a %s is named as Go names it: %j', (kind, object, sentence) => {
    const definition = builtinDefinitions.find((each) => each.kind === kind);
    if (!definition) throw new Error(`${kind} is not built in`);
    expect(findMismatch(definition.schema, object, { builtin: true })?.sentence).toBe(sentence);
  });

  it.each(['2020-01-01T00:00:00.000000Z', '2020-01-01T00:00:00.123456+01:00', null])('is none: %s', (renewTime) => {
    const definition = builtinDefinitions.find(({ kind }) => kind === 'Lease');
    expect(findMismatch(definition?.schema ?? {}, { spec: { renewTime } }, { builtin: true })).toBeUndefined();
  });

  it('is looked for only in the metadata of custom resources', () => {
    const schema = { type: 'object', properties: { spec: { type: 'string' } } } as const;
    expect(findMismatch(schema, { spec: 5 }, { builtin: false })).toBeUndefined();
    expect(findMismatch(schema, { metadata: { name: 5 } }, { builtin: false })).toEqual({
      path: 'metadata.name',
      sentence: 'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string',
    });
  });
});

describe('a text that is no time', () => {
  it.each([
    ['2020', 'parsing time "2020" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "-"'],
    [
      '2020-01-01 00:00:00Z',
      'parsing time "2020-01-01 00:00:00Z" as "2006-01-02T15:04:05Z07:00": cannot parse " 00:00:00Z" as "T"',
    ],
    [
      '2020-01-01T00:00:00',
      'parsing time "2020-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
    ],
    ['2020-01-01T00:00:00Zx', 'parsing time "2020-01-01T00:00:00Zx": extra text: "x"'],
    ['2020-13-01T00:00:00Z', 'parsing time "2020-13-01T00:00:00Z": month out of range'],
    ['2020-02-30T00:00:00Z', 'parsing time "2020-02-30T00:00:00Z": day out of range'],
    ['2020-01-01T25:00:00Z', 'parsing time "2020-01-01T25:00:00Z": hour out of range'],
  ])('%s is explained', (text, sentence) => {
    expect(describeTimeError(text)).toBe(sentence);
  });
});
