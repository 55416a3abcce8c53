import { describe, expect, it } from 'vitest';
import { cells, changed, created, lines, object } from './kinds.fixture.ts';
import { namespaceDefinition } from './namespace.ts';

const { strategy } = namespaceDefinition;

describe('Namespace', () => {
  const namespace = created(namespaceDefinition, object('Namespace', {}, { name: 'a', namespace: undefined }));

  it('gets its label, finalizer and phase', () => {
    expect(namespace).toMatchObject({
      metadata: { labels: { 'kubernetes.io/metadata.name': 'a' } },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    });
  });

  it('keeps finalizers that others ask for', () => {
    const given = object('Namespace', { spec: { finalizers: ['example.com/x'] }, status: { phase: 'Terminating' } });
    expect(created(namespaceDefinition, given)).toMatchObject({
      spec: { finalizers: ['example.com/x', 'kubernetes'] },
      status: { phase: 'Active' },
    });
  });

  it('changes finalizers through finalize only', () => {
    const update = changed(namespace, { 'spec.finalizers': [] });
    strategy?.prepareForUpdate?.(update, namespace);
    expect(update['spec']).toEqual({ finalizers: ['kubernetes'] });
    const finalize = changed(namespace, { 'spec.finalizers': [], 'status.phase': 'Terminating' });
    strategy?.prepareForSubresourceUpdate?.('finalize', finalize, namespace);
    expect(finalize).toMatchObject({ spec: { finalizers: [] }, status: { phase: 'Active' } });
  });

  it('refuses finalizers that name nobody', () => {
    const bad = changed(namespace, { 'spec.finalizers': ['mine'], 'metadata.finalizers': ['mine'] });
    expect(lines(strategy?.validate?.(bad) ?? [])).toEqual([
      'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
      'spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
    ]);
  });

  it('has the phase that its deletion says', () => {
    const check = (phase: string, deletionTimestamp?: string): string[] =>
      lines(
        strategy?.validateStatusUpdate?.(
          changed(namespace, { 'status.phase': phase, 'metadata.deletionTimestamp': deletionTimestamp }),
          namespace,
        ) ?? [],
      );
    expect(check('Active')).toEqual([]);
    expect(check('Terminating', '2026-01-01T00:00:00Z')).toEqual([]);
    expect(check('Terminating')).toEqual([
      'status.Phase: Invalid value: "Terminating": may only be \'Active\' if `deletionTimestamp` is empty',
    ]);
    expect(check('Active', '2026-01-01T00:00:00Z')).toEqual([
      'status.Phase: Invalid value: "Active": may only be \'Terminating\' if `deletionTimestamp` is not empty',
    ]);
  });

  it('shows its phase', () => {
    expect(cells(namespaceDefinition, namespace, 0)).toEqual(['a', 'Active', '<unknown>']);
  });
});
