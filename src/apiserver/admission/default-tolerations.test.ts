import { describe, expect, it } from 'vitest';
import { attributesOf, pods } from './attributes.fixture.ts';
import { DefaultTolerations } from './default-tolerations.ts';
import { pod, refused, specOf } from './plugins.fixture.ts';

describe('DefaultTolerations', () => {
  const both = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
  const added = (key: string) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 });

  it.each([
    ['nothing', [], both],
    ['something else', [{ key: 'x', operator: 'Exists' }], both],
    ['one of them', [{ key: both[0], operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 7 }], [both[1]]],
    ['one of them for all effects', [{ key: both[1], operator: 'Exists' }], [both[0]]],
    ['one of them for NoSchedule only', [{ key: both[1], operator: 'Exists', effect: 'NoSchedule' }], both],
    ['everything', [{ operator: 'Exists' }], []],
  ])('a pod that tolerates %s', async (_, tolerations, missing) => {
    const attributes = attributesOf(pods, pod(tolerations.length === 0 ? {} : { tolerations }));
    await refused(new DefaultTolerations(), attributes);
    const expected = [...tolerations, ...missing.map((key) => added(key ?? ''))];
    expect((specOf(attributes) as { tolerations: unknown }).tolerations).toEqual(expected);
  });
});
