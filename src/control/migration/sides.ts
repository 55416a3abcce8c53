import type { GuestIdentity, HalfVolume } from '../../api/kubevirt/migration-halves.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { quantityToNumber } from '../../api/quantity.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { ownState } from '../../migration/phase/facts.ts';
import type { SlotState } from '../../migration/slots/request.ts';
import type { LauncherPod } from '../resources.ts';
import { guestMemory, processorCount } from '../vmi/launcher-resources.ts';
import { machineNeeds } from './machine-needs.ts';

/**
 * What the two sides of a pair say of themselves in the status of their guests, from where it is carried over. Whoever
 * writes it first has the guest: a state that is over is replaced, one that is not belongs to another migration.
 */

type SourceState = NonNullable<MigrationState['sourceState']>;
type TargetState = NonNullable<MigrationState['targetState']>;

/** What a source is described from. */
export interface SourceSide {
  readonly migration: VirtualMachineInstanceMigration;
  readonly guest: VirtualMachineInstance;
  /** The pod that executes the guest. */
  readonly pod: LauncherPod | undefined;
  /** Labels of its node. */
  readonly nodeLabels: { readonly [key: string]: string };
  readonly slots: SlotState | undefined;
}

/** What a target is described from. */
export interface TargetSide {
  readonly migration: VirtualMachineInstanceMigration;
  readonly guest: VirtualMachineInstance;
  readonly slots: SlotState | undefined;
  readonly volumes: readonly HalfVolume[];
}

/** The state with all that a source has to tell; undefined where it is there. */
export function describedSource(side: SourceSide): MigrationState | undefined {
  const { migration } = side;
  const state = ownState(side);
  const told = { ...state?.sourceState, ...sourceStateOf(side) };
  if (state && deepEqual(state.sourceState, withoutNothing(told))) return undefined;
  return { ...(state ?? { migrationUid: migration.metadata.uid ?? '' }), sourceState: withoutNothing(told) };
}

/** The state with all that a target has to tell; undefined where it is there. */
export function describedTarget(side: TargetSide): MigrationState | undefined {
  const state = ownState(side);
  const told = withoutNothing({ ...state?.targetState, ...targetStateOf(side) });
  if (state && deepEqual(state.targetState, told)) return undefined;
  return { ...state, targetState: told };
}

function sourceStateOf({ migration, guest, pod, nodeLabels, slots }: SourceSide): SourceState {
  const { spec, status = {} } = guest;
  const { holder, epoch } = status.rightToRun ?? {};
  const memory = guestMemory(spec);
  return {
    ...identified(migration, guest),
    node: holder?.node,
    pod: pod?.metadata.name,
    runner: holder,
    epoch,
    slots,
    nodeSelectors: machineNeeds(guest, nodeLabels),
    identity: identityOf(guest),
    memoryBytes: memory && quantityToNumber(memory),
    vcpus: processorCount(spec),
    machineType: status.machine?.type,
    cpuTopology: status.currentCPUTopology,
    memory: status.memory,
  } as SourceState;
}

function targetStateOf({ migration, guest, slots, volumes }: TargetSide): TargetState {
  return { ...identified(migration, guest), slots, volumes: [...volumes] } as TargetState;
}

function identified({ metadata }: VirtualMachineInstanceMigration, guest: VirtualMachineInstance) {
  return {
    migrationUID: metadata.uid,
    virtualMachineInstanceUID: guest.metadata.uid,
    domainName: guest.metadata.name,
    domainNamespace: guest.metadata.namespace,
  };
}

/** What the guest is known by, also where nobody chose it. */
function identityOf({ metadata, spec, status }: VirtualMachineInstance): GuestIdentity {
  const { firmware, devices } = spec.domain;
  const addresses = (devices.interfaces ?? []).flatMap(({ name, macAddress }) => {
    const mac = macAddress || status?.interfaces?.find((each) => each.name === name)?.mac;
    return mac ? [[name, mac] as const] : [];
  });
  return {
    firmwareUUID: firmware?.uuid || metadata.uid || '',
    ...(firmware?.serial ? { firmwareSerial: firmware.serial } : {}),
    ...(addresses.length > 0 ? { macAddresses: Object.fromEntries(addresses) } : {}),
  };
}

function withoutNothing<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
