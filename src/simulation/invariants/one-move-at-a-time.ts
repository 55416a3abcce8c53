import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATIONS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';
import { guestKeyOf, isHandedOff, migrationsOf } from '../moves.ts';

/** A guest is in one migration at a time. */
export function oneMoveAtATime(): Invariant {
  return {
    name: 'one-move-at-a-time',
    observe({ bucket, object }, state) {
      if (bucket !== MIGRATIONS || !object) return undefined;
      const movers = new Map<string, string>();
      for (const migration of migrationsOf(state)) {
        if (!isHandedOff(migration) || isFinalMigration(migration)) continue;
        const guest = guestKeyOf(migration);
        const { name = '' } = migration.metadata;
        const other = movers.get(guest);
        if (other !== undefined) return `${guest} is moved by ${other} and by ${name} at once`;
        movers.set(guest, name);
      }
      return undefined;
    },
  };
}
