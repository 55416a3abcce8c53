import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { decideDeletion, isReadyToGo } from './deletion.ts';

const definition = (kind: string): ResourceDefinition => ({
  group: '',
  version: 'v1',
  plural: `${kind.toLowerCase()}s`,
  singular: kind.toLowerCase(),
  kind,
  listKind: `${kind}List`,
  namespaced: true,
  schema: {},
  hasStatus: true,
  hasGeneration: false,
  columns: [],
});
const pods = definition('Pod');
const maps = definition('ConfigMap');
const nowMs = Date.UTC(2026, 0, 1, 12, 0, 0);

const pod = (
  extra: { nodeName?: string; phase?: string; metadata?: KubeObject['metadata']; grace?: number } = {},
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', ...extra.metadata },
  spec: { nodeName: extra.nodeName, terminationGracePeriodSeconds: extra.grace ?? 30 },
  status: { phase: extra.phase ?? 'Running' },
});

describe('deletion', () => {
  it('removes what nothing holds', () =>
    expect(decideDeletion(maps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} }, {}, nowMs)).toEqual({
      kind: 'removed',
    }));

  it.each([
    ['a pod without a node', pod(), {}],
    ['a finished pod', pod({ nodeName: 'n', phase: 'Succeeded' }), {}],
    ['a forced deletion', pod({ nodeName: 'n' }), { gracePeriodSeconds: 0 }],
  ])('removes %s at once', (_name, object, options) =>
    expect(decideDeletion(pods, object, options, nowMs).kind).toBe('removed'),
  );

  it('gives a running pod its own grace period', () => {
    const decision = decideDeletion(pods, pod({ nodeName: 'n', metadata: { generation: 1 } }), {}, nowMs);
    expect(decision).toMatchObject({
      kind: 'marked',
      object: {
        metadata: { deletionTimestamp: '2026-01-01T12:00:30Z', deletionGracePeriodSeconds: 30, generation: 2 },
      },
    });
  });

  it('takes a negative grace period for the shortest graceful one', () => {
    expect(decideDeletion(pods, pod({ nodeName: 'n' }), { gracePeriodSeconds: -5 }, nowMs)).toMatchObject({
      object: { metadata: { deletionGracePeriodSeconds: 1 } },
    });
  });

  const terminating = pod({
    nodeName: 'n',
    metadata: { deletionTimestamp: '2026-01-01T12:01:00Z', deletionGracePeriodSeconds: 60 },
  });
  it('lets a second request shorten the period, never lengthen it', () => {
    expect(decideDeletion(pods, terminating, { gracePeriodSeconds: 120 }, nowMs)).toEqual({ kind: 'unchanged' });
    expect(decideDeletion(pods, terminating, { gracePeriodSeconds: 10 }, nowMs)).toMatchObject({
      kind: 'marked',
      object: { metadata: { deletionTimestamp: '2026-01-01T12:00:10Z', deletionGracePeriodSeconds: 10 } },
    });
  });

  it('waits for finalizers, those of the propagation policy too', () => {
    const held: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { finalizers: ['a/b'] } };
    expect(decideDeletion(maps, held, {}, nowMs)).toMatchObject({
      kind: 'marked',
      object: { metadata: { finalizers: ['a/b'], deletionGracePeriodSeconds: 0 } },
    });
    expect(decideDeletion(maps, held, { propagationPolicy: 'Foreground' }, nowMs)).toMatchObject({
      object: { metadata: { finalizers: ['a/b', 'foregroundDeletion'] } },
    });
    const plain: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} };
    expect(decideDeletion(maps, plain, { propagationPolicy: 'Orphan' }, nowMs)).toMatchObject({
      object: { metadata: { finalizers: ['orphan'] } },
    });
    expect(
      decideDeletion(
        maps,
        { ...plain, metadata: { finalizers: ['orphan'] } },
        { propagationPolicy: 'Background' },
        nowMs,
      ),
    ).toEqual({ kind: 'removed' });
  });

  it('lets a second request change the policy', () => {
    const metadata = { deletionTimestamp: '2026-01-01T12:00:00Z', finalizers: ['example.com/x', 'foregroundDeletion'] };
    const object: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
    expect(decideDeletion(maps, object, { propagationPolicy: 'Orphan' }, nowMs)).toMatchObject({
      kind: 'marked',
      object: { metadata: { finalizers: ['example.com/x', 'orphan'] } },
    });
    expect(decideDeletion(maps, object, { propagationPolicy: 'Foreground' }, nowMs).kind).toBe('unchanged');
  });

  it('does not change what it is given', () => {
    const object = pod({ nodeName: 'n' });
    const before = JSON.stringify(object);
    decideDeletion(pods, object, { propagationPolicy: 'Foreground' }, nowMs);
    expect(JSON.stringify(object)).toBe(before);
  });

  it('marks a namespace Terminating until its spec lets it go', () => {
    const object: KubeObject = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'x' },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    };
    const namespaces = definition('Namespace');
    const decision = decideDeletion(namespaces, object, {}, nowMs);
    expect(decision).toMatchObject({ kind: 'marked', object: { status: { phase: 'Terminating' } } });
    if (decision.kind !== 'marked') return;
    expect(isReadyToGo(namespaces, decision.object)).toBe(false);
    expect(isReadyToGo(namespaces, { ...decision.object, spec: { finalizers: [] } })).toBe(true);
  });
});
