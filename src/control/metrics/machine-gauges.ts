import { PRINTABLE_STATUSES, type PrintableStatus, type VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { virtualMachines } from '../../kube/kubevirt-resources.ts';
import type { Sample } from '../../kube/sampled-gauge.ts';
import type { ControlContext } from '../context.ts';
import type { DefineGauge } from './define-gauge.ts';
import { secondsOf, shortened, systemOf } from './labels.ts';

/** The machines that there are. */

/** As which KubeVirt counts each status; all others are errors, those that it does not know included. */
const GROUPS: readonly (readonly [group: string, statuses: readonly PrintableStatus[]])[] = [
  ['starting', ['Provisioning', 'Starting', 'WaitingForVolumeBinding', 'WaitingForReceiver']],
  ['running', ['Running']],
  ['migrating', ['Migrating']],
  ['non_running', ['Stopped', 'Paused', 'Stopping', 'Terminating']],
];
const ERROR = 'error';

const GROUP_OF: ReadonlyMap<string, string> = new Map(
  PRINTABLE_STATUSES.map((status) => [status, GROUPS.find(([, each]) => each.includes(status))?.[0] ?? ERROR]),
);

/** Conditions that change with the status of a machine. */
const TOLD_BY: readonly string[] = ['Ready', 'Failure', 'Paused'];

const INFO = [
  ...(['name', 'namespace', 'os', 'workload', 'flavor', 'instance_type', 'preference'] as const),
  ...(['status', 'status_group'] as const),
] as const;

export function machineGauges({ informers }: Pick<ControlContext, 'informers'>, define: DefineGauge): void {
  const machines = informers.of(virtualMachines);
  define({ name: 'kubevirt_vm_info', help: 'What is known of each machine.', labels: INFO }, () =>
    Array.from(machines.list(), (machine): Sample<(typeof INFO)[number]> => [infoOf(machine), 1]),
  );
  for (const group of [...GROUPS.map(([name]) => name), ERROR])
    define(
      {
        name: `kubevirt_vm_${group}_status_last_transition_timestamp_seconds`,
        help: `Since when machines have a status that counts as ${group.replace('_', '-')}, as seconds since 1970; 0 for others.`,
        labels: ['name', 'namespace'],
        type: 'counter',
      },
      () =>
        Array.from(machines.list(), (machine): Sample<'name' | 'namespace'> => {
          const isInGroup = groupOf(machine) === group;
          return [nameOf(machine), isInGroup ? lastTransitionOf(machine) : 0];
        }),
    );
}

function infoOf(machine: VirtualMachine): { readonly [label in (typeof INFO)[number]]: string } {
  const { spec, status } = machine;
  return {
    ...nameOf(machine),
    ...systemOf(spec.template.metadata?.annotations),
    instance_type: shortened(spec.instancetype?.name ?? ''),
    preference: shortened(spec.preference?.name ?? ''),
    status: status?.printableStatus ?? '',
    status_group: groupOf(machine),
  };
}

function nameOf({ metadata }: VirtualMachine): { readonly [label in 'name' | 'namespace']: string } {
  return { name: metadata.name ?? '', namespace: metadata.namespace ?? '' };
}

function groupOf({ status }: VirtualMachine): string {
  return GROUP_OF.get(status?.printableStatus ?? '') ?? ERROR;
}

function lastTransitionOf({ status }: VirtualMachine): number {
  const told = (status?.conditions ?? []).filter(({ type }) => TOLD_BY.includes(type));
  return Math.max(0, ...told.map(({ lastTransitionTime }) => secondsOf(lastTransitionTime) ?? 0));
}
