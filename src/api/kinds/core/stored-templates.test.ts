import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../meta.ts';
import { cells, created, lines, object } from './kinds.fixture.ts';
import { podTemplateDefinition } from './pod-template-kind.ts';
import { replicationControllerDefinition } from './replication-controller.ts';

const template = {
  metadata: { labels: { app: 'web' } },
  spec: {
    containers: [
      { name: 'a', image: 'a:1' },
      { name: 'b', image: 'b:1' },
    ],
  },
};

describe('ReplicationController', () => {
  const { strategy } = replicationControllerDefinition;
  const controller = (spec: JsonObject): ReturnType<typeof object> =>
    created(replicationControllerDefinition, object('ReplicationController', { spec }));
  const check = (spec: JsonObject): string[] => lines(strategy?.validate?.(controller(spec)) ?? []);

  it('takes selector and labels from its template', () => {
    const completed = controller({ template });
    expect(completed.metadata.labels).toEqual({ app: 'web' });
    expect(completed['spec']).toMatchObject({
      selector: { app: 'web' },
      template: { spec: { restartPolicy: 'Always', containers: [{ imagePullPolicy: 'IfNotPresent' }, {}] } },
    });
    expect(completed['status']).toEqual({ replicas: 0 });
    expect(strategy?.validate?.(completed)).toEqual([]);
  });

  it.each<[JsonObject, string]>([
    [{ template, replicas: -1 }, 'spec.replicas: Invalid value: -1: must be greater than or equal to 0'],
    [{ selector: { a: 'b' } }, 'spec.template: Required value'],
    [
      { template, selector: { app: 'other' } },
      'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ],
    [
      { template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } },
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ],
  ])('refuses %j', (spec, message) => {
    expect(check(spec)).toEqual([message]);
  });

  it('shows counts', () => {
    const shown = { ...controller({ template, replicas: 3 }), status: { replicas: 2, readyReplicas: 1 } };
    expect(cells(replicationControllerDefinition, shown, 0)).toEqual([
      'a',
      3,
      2,
      1,
      '<unknown>',
      'a,b',
      'a:1,b:1',
      'app=web',
    ]);
  });
});

describe('PodTemplate', () => {
  it('is defaulted, checked and shown like the pod it stands for', () => {
    const stored = created(podTemplateDefinition, object('PodTemplate', { template }));
    expect(stored['template']).toMatchObject({ spec: { dnsPolicy: 'ClusterFirst' } });
    expect(podTemplateDefinition.strategy?.validate?.(stored)).toEqual([]);
    expect(cells(podTemplateDefinition, stored, 0)).toEqual(['a', 'a,b', 'a:1,b:1', 'app=web']);
    const bad = object('PodTemplate', { template: { spec: { containers: [] } } });
    expect(lines(podTemplateDefinition.strategy?.validate?.(bad) ?? [])).toEqual([
      'template.spec.containers: Required value',
    ]);
  });
});
