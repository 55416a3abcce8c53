import { migrationRole, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATIONS } from '../buckets.ts';
import type { InvariantAcross } from '../invariant.ts';
import { guestKeyOf } from '../moves.ts';
import { addressOf } from '../sync-program.ts';

/**
 * No guest is ever executed for another object than before, in its own cluster or another one, unless somebody who may has
 * said so on both sides: a half here that sends it there, and a half there that receives it, with the same key.
 */
export function crossingsHaveHalves(): InvariantAcross {
  /** What people have ever asked for. */
  const sent = new Set<string>();
  const received = new Map<string, Set<string>>();
  /** The object that each boot was last executed for. */
  const last = new Map<string, Place>();
  return {
    name: 'crossings-have-halves',
    observeAcross({ bucket, object }, _, cluster) {
      if (bucket !== MIGRATIONS || !object) return undefined;
      const migration = object as VirtualMachineInstanceMigration;
      const key = pairKeyOf(migration.spec);
      if (key === undefined) return undefined;
      const place = placeText({ cluster, guest: guestKeyOf(migration) });
      if (migrationRole(migration.spec) === 'source')
        sent.add(sendingOf(place, migration.spec.sendTo?.connectURL ?? '', key));
      else received.set(place, (received.get(place) ?? new Set()).add(key));
      return undefined;
    },
    executedAcross(machines) {
      for (const { cluster, guest, bootId, isExecuting } of machines) {
        if (!isExecuting) continue;
        const [from, to] = [last.get(bootId), { cluster, guest }];
        last.set(bootId, to);
        if (!from || placeText(from) === placeText(to)) continue;
        const keys = [...(received.get(placeText(to)) ?? [])];
        if (!keys.some((key) => sent.has(sendingOf(placeText(from), addressOf(cluster), key))))
          return `${placeText(from)} went to ${placeText(to)}, and no pair has asked for that`;
      }
      return undefined;
    },
  };
}

interface Place {
  readonly cluster: string;
  /** `namespace/name`. */
  readonly guest: string;
}

function placeText({ cluster, guest }: Place): string {
  return cluster === '' ? guest : `${cluster}:${guest}`;
}

function sendingOf(place: string, address: string, key: string): string {
  return `${place} to ${address} by ${key}`;
}
