import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { decideDeletion, deletionWarnings, isReadyToGo } from './deletion.ts';

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

  it('lets only namespaces be held by their spec: another kind may mean what it likes by that field', () => {
    const held = (kind: string): KubeObject => ({
      apiVersion: 'v1',
      kind,
      metadata: {},
      spec: { finalizers: ['kubernetes'] },
    });
    expect(decideDeletion(definition('Namespace'), held('Namespace'), {}, nowMs).kind).toBe('marked');
    expect(decideDeletion(definition('Gadget'), held('Gadget'), {}, nowMs).kind).toBe('removed');
  });

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

  it('keeps what was promised when nothing else is asked, and its finalizers with it', () => {
    expect(decideDeletion(pods, terminating, {}, nowMs)).toEqual({ kind: 'unchanged' });
    const finished = { ...terminating, status: { phase: 'Succeeded' } };
    expect(decideDeletion(pods, finished, {}, nowMs)).toEqual({ kind: 'unchanged' });
    expect(decideDeletion(pods, terminating, { propagationPolicy: 'Foreground' }, nowMs)).toEqual({
      kind: 'unchanged',
    });
    expect(decideDeletion(pods, finished, { gracePeriodSeconds: 0 }, nowMs)).toEqual({ kind: 'removed' });
  });

  it('ends nothing in the past', () => {
    const lateMs = nowMs + 50_000;
    const ends = (gracePeriodSeconds: number, atMs = lateMs, object = terminating) =>
      decideDeletion(pods, object, { gracePeriodSeconds }, atMs);
    const shortest = { deletionTimestamp: '2026-01-01T12:00:50Z', deletionGracePeriodSeconds: 1 };
    expect(ends(10)).toMatchObject({ kind: 'marked', object: { metadata: shortest } });
    expect(ends(-1)).toMatchObject({ kind: 'marked', object: { metadata: shortest } });
    expect(ends(0)).toEqual({ kind: 'removed' });
    const held = { ...terminating, metadata: { ...terminating.metadata, finalizers: ['a/b'] } };
    const over = { deletionTimestamp: '2026-01-01T12:01:00Z', deletionGracePeriodSeconds: 0 };
    expect(ends(0, nowMs + 60_000, held)).toMatchObject({ kind: 'marked', object: { metadata: over } });
  });

  it.each<[string, string, string[] | undefined]>([
    ['', 'ReplicationController', ['orphan']],
    ['batch', 'Job', ['orphan']],
    ['apps', 'ReplicaSet', undefined],
  ])('lets go of dependents where nobody says anything, as %s %s always did', (group, kind, finalizers) => {
    const owners = { ...definition(kind), group };
    const object: KubeObject = { apiVersion: `${group}/v1`, kind, metadata: {} };
    const decision = decideDeletion(owners, object, {}, nowMs);
    expect(decision).toMatchObject(
      finalizers ? { kind: 'marked', object: { metadata: { finalizers } } } : { kind: 'removed' },
    );
    expect(decideDeletion(owners, object, { propagationPolicy: 'Background' }, nowMs).kind).toBe('removed');
    const foreground = { ...object, metadata: { finalizers: ['foregroundDeletion'] } };
    expect(decideDeletion(owners, foreground, {}, nowMs)).toMatchObject({
      object: { metadata: { finalizers: ['foregroundDeletion'] } },
    });
    const isWarned = (options = {}): boolean => deletionWarnings(owners, options).length > 0;
    expect([isWarned(), isWarned({ propagationPolicy: 'Orphan' })]).toEqual([kind === 'Job', false]);
  });

  it('lets nothing hold an event for the sake of dependents', () => {
    const event: KubeObject = { apiVersion: 'v1', kind: 'Event', metadata: { finalizers: ['orphan'] } };
    for (const propagationPolicy of ['Orphan', 'Foreground', undefined] as const) {
      const options = propagationPolicy ? { propagationPolicy } : {};
      expect(decideDeletion(definition('Event'), event, options, nowMs)).toEqual({ kind: 'removed' });
    }
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
