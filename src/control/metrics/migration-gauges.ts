import {
  isFinalMigration,
  MIGRATION_PHASES,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { Informer } from '../../kube/informer.ts';
import { virtualMachineInstanceMigrations } from '../../kube/kubevirt-resources.ts';
import type { Sample } from '../../kube/sampled-gauge.ts';
import type { ControlContext } from '../context.ts';
import type { DefineGauge } from './define-gauge.ts';

/** The migrations that there are. Those that are over are as many as are kept of each guest. */

type Migration = VirtualMachineInstanceMigration;

const PHASES_UNDER_WAY = MIGRATION_PHASES.filter((phase) => !isFinalMigration({ status: { phase } }));

/** What KubeVirt calls running: all that is neither over, nor waits for its turn, nor for its target pod. */
const RUNNING = PHASES_UNDER_WAY.filter((phase) => !['', 'Pending', 'Scheduling'].includes(phase));

const COUNTED = [
  ['pending', ['Pending'], 'Migrations that wait for their turn.'],
  ['scheduling', ['Scheduling'], 'Migrations whose target pod looks for a node.'],
  ['running', RUNNING, 'Migrations that are being prepared, under way, or in touch with their other halves.'],
  ['unset', [''], 'Migrations that no controller has looked at.'],
] as const;

const ENDED = ['vmi', 'vmim', 'namespace'] as const;

export function migrationGauges({ informers }: Pick<ControlContext, 'informers'>, define: DefineGauge): void {
  const migrations = informers.of(virtualMachineInstanceMigrations, { phase: phasesOf });
  for (const [name, phases, help] of COUNTED)
    define({ name: `kubevirt_vmi_migrations_in_${name}_phase`, help }, () => [
      [{}, phases.reduce((sum, phase) => sum + migrations.countByIndex('phase', phase), 0)],
    ]);
  const succeeded = { name: 'kubevirt_vmi_migration_succeeded', help: 'Migrations that succeeded, and are kept.' };
  define({ ...succeeded, labels: ENDED }, () => ended(migrations, 'Succeeded'));
  const failed = { name: 'kubevirt_vmi_migration_failed', help: 'Migrations that failed, and are kept.' };
  define({ ...failed, labels: ENDED }, () => ended(migrations, 'Failed'));
  define(
    {
      name: 'godwit_migrations_unfinished',
      help: 'Migrations that are not over, by phase and by why their guests move.',
      labels: ['phase', 'cause'],
    },
    () =>
      counted(underWay(migrations), ({ spec, status }) => [{ phase: status?.phase ?? '', cause: spec.cause ?? '' }]),
  );
  define(
    {
      name: 'godwit_migrations_held_up',
      help: 'Migrations that are not over, by the conditions that say what is in their way.',
      labels: ['condition', 'reason'],
    },
    () =>
      counted(underWay(migrations), ({ status }) =>
        (status?.conditions ?? [])
          .filter((condition) => condition.status === 'True')
          .map(({ type, reason = '' }) => ({ condition: type, reason })),
      ),
  );
}

function* underWay(migrations: Informer<Migration>): Generator<Migration> {
  for (const phase of PHASES_UNDER_WAY) yield* migrations.byIndex('phase', phase);
}

function ended(migrations: Informer<Migration>, phase: 'Succeeded' | 'Failed'): Sample<(typeof ENDED)[number]>[] {
  return migrations
    .byIndex('phase', phase)
    .map(({ metadata, spec }) => [
      { vmi: spec.vmName ?? spec.vmiName ?? '', vmim: metadata.name ?? '', namespace: metadata.namespace ?? '' },
      1,
    ]);
}

/** How many objects have the same labels. */
function counted<O, T extends string>(
  objects: Iterable<O>,
  labelsOf: (object: O) => readonly { readonly [label in T]: string }[],
): Iterable<Sample<T>> {
  const counts = new Map<string, [{ readonly [label in T]: string }, number]>();
  for (const object of objects)
    for (const labels of labelsOf(object)) {
      const key = JSON.stringify(labels);
      const known = counts.get(key);
      if (known) known[1]++;
      else counts.set(key, [labels, 1]);
    }
  return counts.values();
}

function phasesOf({ status }: Migration): readonly string[] {
  return [status?.phase ?? ''];
}
