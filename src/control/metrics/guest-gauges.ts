import { causesOf } from '../../api/kubevirt/evacuation.ts';
import { evictionStrategyOf, isMigratable } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { OUTDATED_LAUNCHER_LABEL } from '../../api/kubevirt/well-known.ts';
import type { Informer } from '../../kube/informer.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import type { Sample } from '../../kube/sampled-gauge.ts';
import { configurationOf, type ControlContext } from '../context.ts';
import { uidsOf } from '../migration/keys.ts';
import { type LauncherPod, pods } from '../resources.ts';
import type { DefineGauge } from './define-gauge.ts';
import { secondsOf, sizingOf, systemOf } from './labels.ts';

/** The guests that there are. */

type Guest = VirtualMachineInstance;

const INFO = [
  ...(['node', 'namespace', 'name', 'phase', 'os', 'workload', 'flavor', 'instance_type', 'preference'] as const),
  ...(['guest_os_kernel_release', 'guest_os_machine', 'guest_os_arch', 'guest_os_name'] as const),
  ...(['guest_os_version_id', 'evictable', 'outdated', 'vmi_pod'] as const),
] as const;

const PLACE = ['node', 'namespace', 'name'] as const;

export function guestGauges({ informers }: Pick<ControlContext, 'informers'>, define: DefineGauge): void {
  const guests = informers.of(virtualMachineInstances, { deadline: deadlinesOf });
  const launchers = informers.of(pods, { uid: uidsOf });
  const configuration = configurationOf(informers);
  define({ name: 'kubevirt_vmi_info', help: 'What is known of each guest.', labels: INFO }, () =>
    each(guests, (guest) => [[infoOf(guest, launchers, configuration()), 1]]),
  );
  define(
    {
      name: 'kubevirt_vmi_non_evictable',
      help: 'Guests that are to be live-migrated when their node is emptied, and cannot be (1), and all others (0).',
      labels: PLACE,
    },
    () => each(guests, (guest) => [[placeOf(guest), isEvictable(guest, configuration()) ? 0 : 1]]),
  );
  define(
    {
      name: 'godwit_vmi_evacuation_deadline_seconds',
      help: 'When guests must have left their nodes, as seconds since 1970: their pods are being deleted.',
      labels: [...PLACE, 'cause'],
    },
    () =>
      guests.byIndex('deadline', DEADLINE).flatMap((guest) =>
        causesOf(guest).flatMap(({ cause, deadline }) => {
          const seconds = secondsOf(deadline);
          return seconds === undefined ? [] : [[{ ...placeOf(guest), cause }, seconds] as const];
        }),
      ),
  );
  migrationTimes(informers, guests, define);
}

/** The migration that a guest is in, or was in last. */
function migrationTimes(informers: ControlContext['informers'], guests: Informer<Guest>, define: DefineGauge): void {
  const migrations = informers.of(virtualMachineInstanceMigrations, { uid: uidsOf });
  const labelsOf = (guest: Guest) => {
    const [migration] = migrations.byIndex('uid', guest.status?.migrationState?.migrationUid ?? '');
    return { ...placeOf(guest), migration_name: migration?.metadata.name ?? '' };
  };
  define(
    {
      name: 'kubevirt_vmi_migration_start_time_seconds',
      help: 'When the last copy of a guest began, as seconds since 1970.',
      labels: [...PLACE, 'migration_name'],
    },
    () =>
      each(guests, (guest) => {
        const seconds = secondsOf(guest.status?.migrationState?.startTimestamp);
        return seconds === undefined ? [] : [[labelsOf(guest), seconds]];
      }),
  );
  define(
    {
      name: 'kubevirt_vmi_migration_end_time_seconds',
      help: 'When the last copy of a guest ended, as seconds since 1970.',
      labels: [...PLACE, 'migration_name', 'status'],
    },
    () =>
      each(guests, (guest) => {
        const { endTimestamp, completed, failed } = guest.status?.migrationState ?? {};
        const seconds = secondsOf(endTimestamp);
        const status = completed !== true ? '' : failed === true ? 'failed' : 'succeeded';
        return seconds === undefined ? [] : [[{ ...labelsOf(guest), status }, seconds]];
      }),
  );
}

function* each<T extends string>(
  guests: Informer<Guest>,
  samplesOf: (guest: Guest) => readonly Sample<T>[],
): Generator<Sample<T>> {
  for (const guest of guests.list()) yield* samplesOf(guest);
}

function infoOf(
  guest: Guest,
  launchers: Informer<LauncherPod>,
  configuration: KubeVirtConfiguration,
): { readonly [label in (typeof INFO)[number]]: string } {
  const { metadata, status } = guest;
  const { guestOSInfo: system } = status ?? {};
  const [pod] = launchers.byIndex('uid', status?.rightToRun?.holder?.podUID ?? '');
  return {
    ...placeOf(guest),
    phase: (status?.phase ?? '').toLowerCase(),
    ...systemOf(metadata.annotations),
    ...sizingOf(metadata.annotations),
    guest_os_kernel_release: system?.kernelRelease ?? '',
    guest_os_machine: status?.machine?.type ?? '',
    guest_os_arch: system?.machine ?? '',
    guest_os_name: system?.name ?? '',
    guest_os_version_id: system?.versionId ?? '',
    evictable: String(isEvictable(guest, configuration)),
    outdated: String(Object.hasOwn(metadata.labels ?? {}, OUTDATED_LAUNCHER_LABEL)),
    vmi_pod: pod?.metadata.name ?? '',
  };
}

function placeOf({ metadata, status }: Guest): { readonly [label in (typeof PLACE)[number]]: string } {
  return { node: status?.nodeName ?? '', namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
}

/** As KubeVirt has it: of whom nobody has said that it can be moved, it is taken that it cannot. */
function isEvictable(guest: Guest, configuration: KubeVirtConfiguration): boolean {
  return evictionStrategyOf(guest, configuration) !== 'LiveMigrate' || isMigratable(guest);
}

const DEADLINE = 'deadline';

function deadlinesOf(guest: Guest): readonly string[] {
  return causesOf(guest).some(({ deadline }) => deadline !== undefined) ? [DEADLINE] : [];
}
