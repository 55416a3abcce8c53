import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../meta.ts';
import { podWarnings } from './warnings.ts';

function warningsOf(spec: JsonObject, annotations: Record<string, string> = {}, name = 'one'): string[] {
  return podWarnings({ apiVersion: 'v1', kind: 'Pod', metadata: { name, annotations }, spec }, undefined);
}

const container = (fields: JsonObject): JsonObject => ({ containers: [{ name: 'main', image: 'x', ...fields }] });

describe('warnings of pods', () => {
  it('has none for what is well', () =>
    expect(
      warningsOf({
        nodeSelector: { 'kubernetes.io/os': 'linux' },
        volumes: [{ name: 'a', emptyDir: {} }],
        ...container({
          env: [
            { name: 'A', value: '1' },
            { name: 'A', value: '$(A)2' },
          ],
          ports: [{ containerPort: 80 }, { containerPort: 81 }],
          resources: { limits: { memory: '1Gi', cpu: '100m' } },
        }),
      }),
    ).toEqual([]));

  it.each<[string, JsonObject, string]>([
    [
      'a label that has another name now',
      { nodeSelector: { 'beta.kubernetes.io/os': 'linux' } },
      'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
    ],
    [
      'a spread over pods that nothing selects',
      { topologySpreadConstraints: [{ topologyKey: 'zone' }] },
      'spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod',
    ],
    [
      'an affinity to pods that nothing selects',
      { affinity: { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ podAffinityTerm: {} }] } } },
      'spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod',
    ],
    [
      'a volume that nobody serves',
      { volumes: [{ name: 'a', gitRepo: { repository: 'x' } }] },
      'spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+',
    ],
    [
      'a secret twice',
      { imagePullSecrets: [{ name: 'a' }, { name: 'a' }] },
      'spec.imagePullSecrets[1].name: duplicate name "a"',
    ],
    [
      'a part of a byte',
      container({ resources: { requests: { memory: '100m' } } }),
      'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer',
    ],
    [
      'a variable twice',
      container({
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
      }),
      'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
    ],
    [
      'a port twice',
      container({ ports: [{ containerPort: 80 }, { containerPort: 80, name: 'web' }] }),
      'spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]',
    ],
  ])('warns of %s', (_what, spec, warning) => expect(warningsOf(spec)).toEqual([warning]));

  it('warns of annotations that say nothing any more, and of names that are no host names', () => {
    expect(warningsOf({}, { 'scheduler.alpha.kubernetes.io/critical-pod': '' })).toEqual([
      'metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead',
    ]);
    expect(warningsOf({}, {}, 'a.b')).toEqual([expect.stringContaining("this is used in the Pod's hostname")]);
  });

  it('compares ports with those of their number alone, and each with so many', () => {
    const different = Array.from({ length: 50_000 }, (_, index) => ({ containerPort: index + 1 }));
    expect(warningsOf(container({ ports: different }))).toEqual([]);
    const same = Array.from({ length: 2_000 }, () => ({ containerPort: 80 }));
    expect(warningsOf(container({ ports: same })).length).toBeLessThan(200_000);
  });
});
