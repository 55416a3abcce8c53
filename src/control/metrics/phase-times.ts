import { Histogram, type Registry } from 'prom-client';
import type { KubeObject } from '../../api/meta.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import type { ControlContext } from '../context.ts';

/** How long guests and migrations take from one phase to another, as their own time stamps say, of one second each. */

/** KubeVirt's. */
export const PHASE_SECONDS_BUCKETS = [0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600];

interface Phased extends KubeObject {
  status?: {
    readonly phase?: string;
    readonly phaseTransitionTimestamps?: readonly {
      readonly phase?: string;
      readonly phaseTransitionTimestamp?: string | null;
    }[];
  };
}

export function phaseTimes({ informers }: Pick<ControlContext, 'informers'>, registry: Registry): void {
  const histogram = <T extends string>(name: string, help: string, labelNames: T[]): Histogram<T> =>
    new Histogram({ name, help, labelNames, buckets: PHASE_SECONDS_BUCKETS, registers: [registry] });
  const ofMigration = histogram(
    'kubevirt_vmi_migration_phase_transition_time_from_creation_seconds',
    'How long after they were asked for migrations came to a phase.',
    ['phase'],
  );
  const fromCreation = histogram(
    'kubevirt_vmi_phase_transition_time_from_creation_seconds',
    'How long after they were made guests came to a phase.',
    ['phase'],
  );
  const fromDeletion = histogram(
    'kubevirt_vmi_phase_transition_time_from_deletion_seconds',
    'How long after they were deleted guests came to their last phase.',
    ['phase'],
  );
  const between = histogram(
    'kubevirt_vmi_phase_transition_time_seconds',
    'How long guests took from one phase to another.',
    ['phase', 'last_phase'],
  );
  informers.of(virtualMachineInstanceMigrations).onChange(({ object, old }) => {
    const phase = newPhaseOf(object, old);
    if (phase === undefined) return;
    observe(ofMigration, { phase }, createdMs(object), beganMs(object, phase));
  });
  informers.of(virtualMachineInstances).onChange(({ object, old }) => {
    const phase = newPhaseOf(object, old);
    if (phase === undefined) return;
    const last = old?.status?.phase ?? '';
    const atMs = beganMs(object, phase);
    observe(fromCreation, { phase }, createdMs(object), atMs);
    observe(between, { phase, last_phase: last }, last === '' ? createdMs(object) : beganMs(object, last), atMs);
    if (phase === 'Succeeded' || phase === 'Failed')
      observe(fromDeletion, { phase }, Date.parse(object.metadata.deletionTimestamp ?? ''), atMs);
  });
}

/** The phase that an object has come to with a change; undefined where that is none, and where it may be long ago. */
function newPhaseOf(object: Phased, old: Phased | undefined): string | undefined {
  const phase = object.status?.phase ?? '';
  const isSame = !old || old.metadata.uid !== object.metadata.uid || (old.status?.phase ?? '') === phase;
  return isSame || phase === '' ? undefined : phase;
}

function createdMs({ metadata }: KubeObject): number {
  return Date.parse(metadata.creationTimestamp ?? '');
}

function beganMs({ status }: Phased, phase: string): number {
  const began = status?.phaseTransitionTimestamps?.find((each) => each.phase === phase);
  return Date.parse(began?.phaseTransitionTimestamp ?? '');
}

/** What nobody has said the time of is not counted; clocks differ, and nothing takes less than no time. */
function observe<T extends string>(
  histogram: Histogram<T>,
  labels: { readonly [label in T]: string },
  fromMs: number,
  untilMs: number,
): void {
  const ms = untilMs - fromMs;
  if (!Number.isNaN(ms)) histogram.observe(labels, Math.max(0, ms) / 1000);
}
