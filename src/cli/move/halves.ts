import { migrationRole, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Env } from '../../env/ports.ts';
import { derivedSuffix } from '../../machinery/derived-identity.ts';
import { MOVE_LABEL, type Place, RUN_ANNOTATION } from './receiving-machine.ts';

/** The two migrations of a move, and how they are told from others. Pure. */

/** The names of both halves, which follow from the move, and what they know each other by. */
export interface Halves {
  readonly key: string;
  readonly send: string;
  readonly receive: string;
}

/** The halves of a move. There is one of each at a time: whoever makes the receiving one has chosen the key of both. */
export function halvesOf(id: string, key: string): Halves {
  return { key, send: `send-${id}`, receive: `receive-${id}` };
}

/** A key that nobody guesses. */
export function newKey(id: string, { random }: Pick<Env, 'random'>): string {
  return `move-${id}-${random.uuid()}`;
}

/** What the objects of an attempt are marked with: it follows from the key, and tells nobody what that is. */
export function runOf({ key }: Pick<Halves, 'key'>): string {
  return derivedSuffix(key, 'attempt of a move', RUN_LENGTH);
}

const RUN_LENGTH = 16;

/** Whether another attempt uses an object than the one of these halves. */
export function isOfAnotherRun({ metadata }: KubeObject, halves: Pick<Halves, 'key'>): boolean {
  const run = metadata.annotations?.[RUN_ANNOTATION];
  return run !== undefined && run !== runOf(halves);
}

/** A half as it is made. */
export function halfOf(id: string, name: string, place: Place, spec: object): VirtualMachineInstanceMigration {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name, namespace: place.namespace, labels: { [MOVE_LABEL]: id } },
    spec: { vmName: place.name, vmiName: place.name, ...spec },
  };
}

/** Whether a migration is the half of this move that has this part, for the machine of this place. */
export function isHalfOf(
  { metadata, spec }: VirtualMachineInstanceMigration,
  id: string,
  role: 'source' | 'target',
  { name }: Pick<Place, 'name'>,
): boolean {
  const isOwn = metadata.labels?.[MOVE_LABEL] === id && migrationRole(spec) === role;
  return isOwn && (spec.vmName || spec.vmiName) === name;
}

/** Whether two halves are of one pair. */
export function arePaired(one: VirtualMachineInstanceMigration, other: VirtualMachineInstanceMigration): boolean {
  const key = pairKeyOf(one.spec);
  return key !== undefined && key === pairKeyOf(other.spec);
}
