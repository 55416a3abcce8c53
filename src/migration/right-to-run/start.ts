import { isSameRunner } from './attempt.ts';
import { judgeImages, stampsOfStart, volumesOfStart } from './image-stamps.ts';
import { change, journal, machine, type Plan, plan, refuse, type Step } from './plan.ts';
import { begin } from './record.ts';
import type { StartWish, View } from './view.ts';

/**
 * Start: claim the next epoch, then start the machine, once. The intent is written first, so that a claim whose answer
 * was lost is known for one's own afterwards, and told apart from that of a journal which is gone.
 */
export function start(view: View, wish: StartWish): Plan {
  const { standing, record, self } = view;
  if (view.unheard.length > 0) return unheardOf(view.unheard);
  if (view.outOfService.has(self.nodeUID)) return outOfService(self.node);
  if (view.machine !== 'dead') return refuse('AlreadyRunning', 'this pod has a machine already');
  if (standing.kind !== 'none' && standing.kind !== 'starting') {
    return refuse('Overtaken', 'this pod had its machine; another pod has to be made');
  }
  const stale = wish.disks && judgeImages(wish.disks.images, wish.disks, record?.volumes, wish.remembered?.volumes);
  if (isSameRunner(record?.holder, self)) {
    if (record === undefined || standing.kind === 'none') return journalMissing();
    if (stale !== undefined) return refuse(stale.code, stale.message);
    // What was read may be old, and the right seized since: only another write shows that the claim still stands.
    return plan(...claim(view, wish, record.epoch + 1));
  }
  if (wish.remembered?.grantedAway === true) {
    return refuse('GrantedAway', 'the guest went to another cluster or namespace');
  }
  const other = record?.holder ?? record?.successor;
  if (other !== undefined) return refuse('HeldByAnother', `the right to run is with node ${other.node}`);
  const epoch = Math.max(record?.epoch ?? 0, wish.remembered?.epoch ?? 0) + 1;
  if (record !== undefined && epoch !== record.epoch + 1) {
    return refuse('Quarantined', `the machine remembers epoch ${epoch - 1}, the guest's record has ${record.epoch}`);
  }
  if (stale !== undefined) return refuse(stale.code, stale.message);
  return plan(...claim(view, wish, epoch));
}

/** Who was not heard since a restore may have what the record says nobody has. */
export function unheardOf(nodes: readonly string[]): Plan {
  return refuse('Quarantined', `the API's data was restored, and not all nodes were heard: ${nodes.join(', ')}`);
}

/** A journal that says nothing attests nothing: the record names this pod, so its machine may run somewhere. */
export function journalMissing(): Plan {
  return refuse(
    'JournalMissing',
    'the record names this pod as the holder, but the journal of its node does not know it',
  );
}

/** What was said to run nothing must not run anything: others act on that word. */
export function outOfService(node: string): Plan {
  return refuse('OutOfService', `node ${node} was declared out of service; the taint has to go first`);
}

function claim(view: View, wish: StartWish, epoch: number): Step[] {
  const { record, standing } = view;
  // An earlier claim that was not answered names a record that is gone: it cannot come true any more.
  const { images = [], vm = '' } = wish.disks ?? {};
  const isWritten = standing.kind === 'starting' && standing.epoch === epoch;
  return [
    ...(isWritten ? [] : [journal({ kind: 'starting', epoch })]),
    change(record, begin(record, epoch, view.self, volumesOfStart(images, epoch))),
    journal({ kind: 'started', epoch, ...(wish.isPaused ? { isPaused: true } : {}) }),
    // Once the record is this pod's: nobody else's stamp is written over.
    ...stampsOfStart(images, vm, epoch),
    machine('start'),
    ...(wish.isPaused ? [] : [machine('continue')]),
  ];
}
