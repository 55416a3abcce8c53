import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { fencedIn } from '../../../test/docs/page.ts';
import type { KubeObject } from '../../api/meta.ts';
import { mergedValues, rendered } from './chart.fixture.ts';
import { chart, chartObjects } from './chart.ts';
import { manifests, usualSettings } from './manifests.ts';
import { PARTS } from './parts.ts';
import { onKubelets } from './settings.ts';

/** What an admin gives the chart: names that it knows, and what docs/kubernetes.md says of them. */

const files = chart();
const textOf = (path: string): string => files.get(path) ?? '';
const values = parse(textOf('values.yaml')) as object;
const isValid = new Ajv({ allowUnionTypes: true }).compile(JSON.parse(textOf('values.schema.json')) as object);

/** What Helm would refuse, by where it is. */
function refusedIn(own: object): unknown[] {
  isValid(mergedValues(values, own));
  return (isValid.errors ?? []).map(({ instancePath, params }) => [instancePath, Object.values(params)[0]]);
}

describe('the schema of values', () => {
  it('knows those of the chart, and what else may be said in them', () => {
    expect(refusedIn({})).toEqual([]);
    const more = {
      imagePullSecrets: [{ name: 'registry' }],
      tolerations: [{ key: 'a', operator: 'Equal', value: 'b', effect: 'NoExecute', tolerationSeconds: 5 }],
      extension: { resources: { limits: { cpu: 1, memory: '1Gi' } } },
      agent: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 3 } } },
      configuration: { migrations: { parallelOutboundMigrationsPerNode: 4 } },
    };
    expect(refusedIn(more)).toEqual([]);
  });

  it.each([
    ['', 'extensions', { extensions: {} }],
    ['/extension', 'replica', { extension: { replica: 3 } }],
    ['/agent', 'hostPid', { agent: { hostPid: true } }],
    ['/controllers/resources', 'request', { controllers: { resources: { request: {} } } }],
    ['/tolerations/0', 'kye', { tolerations: [{ kye: 'a' }] }],
    ['/extension/replicas', 'integer', { extension: { replicas: 'three' } }],
    ['/synchronization/arguments/1', 'string', { synchronization: { arguments: ['--advertise', 9185] } }],
  ])('refuses in %j %s', (where, what, own) => expect(refusedIn(own)).toEqual([[where, what]]));
});

it('values for kubelets are those that `godwit manifests --kubelets` is made of', () => {
  const page = readFileSync(new URL('../../../docs/kubernetes.md', import.meta.url), 'utf8');
  const [block, ...others] = fencedIn(page, 'Nodes, three ways').filter(({ language }) => language === 'yaml');
  expect(others).toEqual([]);
  const own = parse(block?.lines.join('\n') ?? '') as object;
  expect(refusedIn(own)).toEqual([]);
  const printed = manifests(onKubelets(usualSettings()));
  for (const part of PARTS.filter((each) => each !== 'crds')) {
    const objects = JSON.parse(JSON.stringify(chartObjects(printed[part]))) as KubeObject[];
    expect(rendered(textOf(`templates/${part}.yaml`), mergedValues(values, own))).toEqual(objects);
  }
});
