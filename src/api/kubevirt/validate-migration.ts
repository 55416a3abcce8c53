import { child, type FieldError, invalid, notSupported, required, tooLong } from '../field-error.ts';
import { labelsErrors } from '../validate-meta.ts';
import { type FeatureGate, isFeatureGateEnabled } from './feature-gates.ts';
import type { KubeVirtConfiguration } from './kube-virt.ts';
import { isMigrationPriority, MIGRATION_PRIORITIES } from './migration-priority.ts';
import { MIGRATION_SPEC_TWINS, twinErrors } from './migration-twins.ts';
import { unknownFieldErrors } from './unknown-fields.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';
import {
  isFinalMigration,
  migrationSpec,
  type VirtualMachineInstanceMigration,
  type VirtualMachineInstanceMigrationSpec,
} from './virtual-machine-instance-migration.ts';

/** What the schema cannot say of migrations. Wants them with both names of fields that have two, as they are stored. */

type Migration = Pick<VirtualMachineInstanceMigration, 'metadata' | 'spec' | 'status'>;
type Spec = VirtualMachineInstanceMigrationSpec;

/** What is wrong with a migration in itself. */
export function migrationErrors(spec: Spec, configuration: KubeVirtConfiguration): FieldError[] {
  return [
    ...unknownFieldErrors(spec, migrationSpec, 'spec'),
    ...(spec.vmName
      ? []
      : [{ type: 'FieldValueRequired', field: 'spec.vmiName', message: 'vmiName is missing' } as const]),
    ...twinErrors(spec, MIGRATION_SPEC_TWINS, 'spec'),
    ...labelsErrors(spec.addedNodeSelector, 'spec.addedNodeSelector'),
    ...priorityErrors(spec, configuration),
    ...halfErrors(spec, configuration),
  ];
}

function priorityErrors({ priority }: Spec, configuration: KubeVirtConfiguration): FieldError[] {
  if (priority === undefined) return [];
  const path = 'spec.priority';
  if (!isFeatureGateEnabled('MigrationPriorityQueue', configuration))
    return [gateIsOff(path, 'MigrationPriorityQueue')];
  return isMigrationPriority(priority) ? [] : [notSupported(path, priority, MIGRATION_PRIORITIES)];
}

function halfErrors({ sendTo, receive }: Spec, configuration: KubeVirtConfiguration): FieldError[] {
  if (!sendTo && !receive) return [];
  if (!isFeatureGateEnabled('DecentralizedLiveMigration', configuration))
    return [gateIsOff(sendTo ? 'spec.sendTo' : 'spec.receive', 'DecentralizedLiveMigration')];
  const errors: FieldError[] = [
    ...(sendTo ? keyErrors(sendTo.key, 'spec.sendTo.key') : []),
    ...(sendTo ? addressErrors(sendTo.connectURL, 'spec.sendTo.connectURL') : []),
    ...(receive ? keyErrors(receive.key, 'spec.receive.key') : []),
  ];
  if (sendTo?.key && receive?.key && sendTo.key !== receive.key) {
    const message = `sendTo migrationID ${sendTo.key} does not match receive migrationID ${receive.key}`;
    errors.push({ type: 'FieldValueInvalid', field: 'spec.receive.key', message });
  }
  return errors;
}

/** As long as keys may be between clusters. */
const KEY_LENGTH_MAX = 512;

function keyErrors(key: string | undefined, path: string): FieldError[] {
  if (!key) return [required(path, 'or migrationID')];
  return key.length > KEY_LENGTH_MAX ? [tooLong(path, KEY_LENGTH_MAX)] : [];
}

/** A name, or an address in brackets where it is of version 6, with a port that may be left out. */
const ADDRESS =
  /^(?:https:\/\/)?(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(?::(\d{1,5}))?\/?$/;
const PORT_MAX = 65_535;

/** What is wrong with where another cluster is reached. */
export function addressErrors(address: string | undefined, path: string): FieldError[] {
  if (!address) return [required(path)];
  const match = ADDRESS.exec(address);
  const port = Number(match?.[1] ?? 1);
  if (match && port >= 1 && port <= PORT_MAX) return [];
  const example = 'sync.example.com:9185, 10.0.0.1:9185, [fd00::1]:9185 or https://sync.example.com:443';
  return [invalid(path, address, `must be a host and a port, such as ${example}`)];
}

function gateIsOff(field: string, gate: FeatureGate): FieldError {
  const message = `${gate} feature gate is not enabled in kubevirt resource`;
  return { type: 'FieldValueNotSupported', field, message };
}

/** A right that RBAC has to give. */
export interface PriorityRight {
  readonly verb: 'use';
  readonly group: 'kubevirt.io';
  readonly resource: 'migrationpriorities';
  /** The class. */
  readonly name: string;
}

/** The right that is needed to ask for a migration of this class; undefined where anybody may. */
export function priorityRight({ priority }: Pick<Spec, 'priority'>): PriorityRight | undefined {
  if (priority === undefined) return undefined;
  return { verb: 'use', group: 'kubevirt.io', resource: 'migrationpriorities', name: priority };
}

/** Which half of a migration between two control planes this is. One that has both halves is a local one. */
export function migrationRole({ sendTo, receive }: Spec): 'source' | 'target' | 'local' {
  if (sendTo && !receive) return 'source';
  return receive && !sendTo ? 'target' : 'local';
}

const NOTHING_TO_MOVE =
  'Cannot migrate VMI that waits for its guest from another namespace or cluster: only a migration with spec.receive moves it.';

/** Why a guest cannot be moved. */
export function migratedGuestErrors(
  { metadata, spec }: Migration,
  guest: Pick<VirtualMachineInstance, 'status'> | undefined,
): FieldError[] {
  const field = 'spec.vmiName';
  // Who receives may be made later than what it is to receive.
  const isReceiver = migrationRole(spec) === 'target';
  if (!guest && isReceiver) return [];
  if (!guest) {
    const message = `the VMI "${metadata.namespace}/${spec.vmName}" does not exist`;
    return [{ type: 'FieldValueNotFound', field, message }];
  }
  const { phase, conditions = [] } = guest.status ?? {};
  if (phase === 'Succeeded' || phase === 'Failed')
    return [{ type: 'FieldValueInvalid', field, message: 'Cannot migrate VMI in finalized state.' }];
  // Whether a guest can move is said of the one that does; of one that waits, nobody knows.
  if (isReceiver) return [];
  // It would wait for what it keeps away: a guest has one migration at a time.
  if (phase === 'WaitingForSync' && guest.status?.rightToRun === undefined)
    return [{ type: 'FieldValueInvalid', field, message: NOTHING_TO_MOVE }];
  const obstacle = conditions.find(({ type, status }) => type === 'LiveMigratable' && status === 'False');
  if (!obstacle) return [];
  const { reason = '', message = '' } = obstacle;
  // Claims of one side are copied to those of the other.
  if (reason === 'DisksNotLiveMigratable' && migrationRole(spec) !== 'local') return [];
  return [{ type: 'FieldValueInvalid', field, message: `Cannot migrate VMI, Reason: ${reason}, Message: ${message}` }];
}

/**
 * What other migrations have against this one: those of the same guest, and those with the same key; others are
 * harmless. What is over counts no more.
 */
export function migrationConflicts(migration: Migration, others: readonly Migration[]): FieldError[] {
  return others.flatMap((other) => {
    const isItself = other.metadata.uid !== undefined && other.metadata.uid === migration.metadata.uid;
    return isItself || isFinalMigration(other) ? [] : conflictWith(migration, other);
  });
}

function conflictWith({ metadata, spec }: Migration, other: Migration): FieldError[] {
  const [role, otherRole] = [migrationRole(spec), migrationRole(other.spec)];
  const isSameKey = role !== 'local' && otherRole !== 'local' && pairKeyOf(spec) === pairKeyOf(other.spec);
  const isPair = arePair(spec, other.spec);
  if (metadata.namespace === other.metadata.namespace && spec.vmName === other.spec.vmName && !isPair) {
    const message = `in-flight migration detected. Active migration job (${other.metadata.uid}) is currently already in progress for VMI ${spec.vmName}.`;
    return [{ type: 'FieldValueDuplicate', field: 'spec.vmiName', message }];
  }
  if (!isSameKey || isPair) return [];
  const message = `the migration ${other.metadata.namespace}/${other.metadata.name} has the same key, and is not over`;
  return [
    { type: 'FieldValueDuplicate', field: child(role === 'source' ? 'spec.sendTo' : 'spec.receive', 'key'), message },
  ];
}

/** Whether two are the halves of one migration: of the same key, and not of the same role. */
export function arePair(one: Spec, other: Spec): boolean {
  const [role, otherRole] = [migrationRole(one), migrationRole(other)];
  const isHalves = role !== 'local' && otherRole !== 'local' && role !== otherRole;
  return isHalves && pairKeyOf(one) === pairKeyOf(other);
}

/** What both halves of a migration are known by; undefined where it is none. */
export function pairKeyOf({ sendTo, receive }: Spec): string | undefined {
  return sendTo?.key ?? sendTo?.migrationID ?? receive?.key ?? receive?.migrationID;
}
