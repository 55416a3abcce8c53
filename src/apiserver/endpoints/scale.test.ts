import { describe, expect, it } from 'vitest';
import { builtin, objectSchema } from '../../api/kinds/meta.ts';
import type { KubeObject } from '../../api/meta.ts';
import { scaleOf, withScale } from './scale.ts';

const definition = builtin({
  group: 'example.com',
  version: 'v1',
  plural: 'sets',
  kind: 'Set',
  namespaced: true,
  schema: objectSchema('Set', '', {}),
});
const object = (spec: object): KubeObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Set',
  metadata: { name: 'a', uid: 'u', resourceVersion: '5', labels: { x: 'y' } },
  spec,
  status: { replicas: 2 },
});

describe('scale', () => {
  it('shows replicas and the selector in its text form', () => {
    const scale = scaleOf(
      definition,
      object({
        replicas: 3,
        selector: {
          matchLabels: { app: 'a' },
          matchExpressions: [
            { key: 'k', operator: 'In', values: ['1', '2'] },
            { key: 'n', operator: 'DoesNotExist' },
          ],
        },
      }),
    );
    expect(scale).toMatchObject({
      kind: 'Scale',
      metadata: { name: 'a', uid: 'u', resourceVersion: '5' },
      spec: { replicas: 3 },
      status: { replicas: 2, selector: 'app=a,k in (1,2),!n' },
    });
  });
  it('takes the plain map of a replication controller for a selector', () => {
    expect(scaleOf(definition, object({ selector: { app: 'a' } })).status.selector).toBe('app=a');
  });
  it('follows the paths of a custom resource, and shows no selector where it has none', () => {
    const custom = {
      ...definition,
      scale: { specReplicasPath: '.spec.size.wanted', statusReplicasPath: '.status.ready' },
    };
    expect(scaleOf(custom, object({ size: { wanted: 4 } }))).toMatchObject({
      spec: { replicas: 4 },
      status: { replicas: 0 },
    });
    expect(scaleOf(custom, object({})).status.selector).toBeUndefined();
    const scaled = withScale(custom, object({}), { ...scaleOf(custom, object({})), spec: { replicas: 7 } });
    expect(scaled['spec']).toEqual({ size: { wanted: 7 } });
  });
});
