import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { Refusal, type Role } from '../channel.ts';
import { applyHalf, boundUidOf, type Half, type PairStatus, stopped } from './halves.ts';

/** What our side becomes of a half that was heard; pure. */

export interface Taken {
  /** Of our guest; undefined where nothing of it changes. */
  readonly status: Partial<PairStatus> | undefined;
  /** Whether the other side can take it for known once that is written. */
  readonly isKnown: boolean;
  /** What the other side is told instead. */
  readonly refusal?: Refusal;
}

/** Where nothing was heard. */
export const UNHEARD: Taken = { status: undefined, isKnown: false };

/** Takes what was heard of the other side, or that it is gone. */
export function taken(
  role: Role,
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance,
  half: Half | undefined,
): Taken {
  if (half === undefined) return { status: stopped(role, migration, guest), isKnown: true };
  const status = applyHalf(role, { migration, guest }, half);
  const bound = boundUidOf(role, migration, guest);
  if (status) return { status, isKnown: true };
  // The migration controller has yet to begin, or the guest is in another migration by now. Whoever waits for an answer has
  // others to tell of meanwhile, and tells all of it again to the process that takes over from us: but how it ended nobody
  // says twice who was told that it is known. A target is told so when it is released; a source can dial, and hear that the
  // other is gone.
  const isOver = half.verdict !== undefined;
  const isLate = isFinalMigration(migration) && isOver;
  if (isLate || bound === undefined || bound === half.uid)
    return { status: undefined, isKnown: !isOver || (isLate && role === 'source') };
  // The other side has begun anew; ours belongs to what it had before, and ends with that.
  const message = 'the source under this key belongs to another migration that receives';
  const refusal = role === 'source' ? { refusal: new Refusal('KeyTaken', message) } : {};
  return { status: stopped(role, migration, guest), isKnown: false, ...refusal };
}
