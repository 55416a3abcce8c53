import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_UID_LABEL, SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { KubeObject } from '../api/meta.ts';
import type { SlotLedger } from '../migration/slots/ledger.ts';
import { parseLedger } from '../migration/slots/ledger-text.ts';
import { MIGRATIONS, VMIS } from './buckets.ts';
import type { State } from './observer.ts';

/** What invariants of migrations look at, as it is in the store. */

/** Where the ledger of slots is. */
export const LEDGER = { bucket: 'configmaps', key: `${SYSTEM_NAMESPACE}/godwit-migration-slots` };

const HANDED_OFF: ReadonlySet<MigrationPhase> = new Set(['PreparingTarget', 'TargetReady', 'Running']);

export function migrationsOf(state: State): VirtualMachineInstanceMigration[] {
  return [...state.list(MIGRATIONS)] as VirtualMachineInstanceMigration[];
}

export function guestsOf(state: State): VirtualMachineInstance[] {
  return [...state.list(VMIS)] as VirtualMachineInstance[];
}

/** Which guest it is about. */
export function guestKeyOf({ metadata, spec }: VirtualMachineInstanceMigration): string {
  return `${metadata.namespace ?? ''}/${spec.vmiName ?? ''}`;
}

/** Whether agents may be at work for it, as its phase says. */
export function isHandedOff({ status }: VirtualMachineInstanceMigration): boolean {
  return HANDED_OFF.has(status?.phase ?? '');
}

/** The ledger of slots, as an object of the store says; undefined where there is none. */
export function ledgerIn(object: KubeObject | undefined): SlotLedger | undefined {
  const data = object?.['data'] as Parameters<typeof parseLedger>[0] | undefined;
  return data && parseLedger(data);
}

/** The migration that a pod was made for; undefined for one that was made for none. */
export function migrationUidOf({ metadata }: KubeObject): string | undefined {
  return metadata.labels?.[MIGRATION_UID_LABEL];
}
