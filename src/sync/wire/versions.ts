import { SyncError } from '../channel.ts';
import type { VersionRange } from './frame.ts';

/** The newest version that both sides speak. Throws `VersionMismatch`, which says what each speaks, where there is none. */
export function commonVersion(own: VersionRange, peer: VersionRange): number {
  const version = Math.min(own.max, peer.max);
  if (version >= Math.max(own.min, peer.min)) return version;
  // The same sentence for both sides: each tells it to its own users.
  throw new SyncError(
    'VersionMismatch',
    `no version of the synchronization protocol in common: one cluster speaks ${rangeText(own)}, the other ${rangeText(peer)}; update the one whose Godwit is older`,
  );
}

function rangeText({ min, max }: VersionRange): string {
  return min === max ? `version ${min}` : `versions ${min} to ${max}`;
}
