import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { type Attempt, epochOfTake } from './attempt.ts';

/** How each transition changes the record. The API server checks the same rules on whoever's behalf a change comes. */

/** `epoch` begins, and `holder` holds the right in it; nobody does when undefined. */
export function begin(
  record: RightToRun | undefined,
  epoch: number,
  holder: Runner | undefined,
  volumes: RightToRun['volumes'] = record?.volumes,
): RightToRun {
  return {
    epoch,
    ...(holder === undefined ? {} : { holder }),
    ...(volumes === undefined ? {} : { volumes }),
  };
}

/** The holder names who may be granted the right next, by an attempt. */
export function withSuccessor(record: RightToRun, { target, across }: Pick<Attempt, 'target' | 'across'>): RightToRun {
  return { ...record, successor: target, ...(across === undefined ? {} : { across: true }) };
}

/** The epoch of a record that is behind a journal; it has the holder that it had. */
export function raised(record: RightToRun, epoch: number): RightToRun {
  return { ...begin(record, epoch, record.holder), ...(isAway(record) ? { across: true } : {}) };
}

/** Volumes whose images are the true ones again though they were left behind, since nobody else has them: stamps of before are overtaken. */
export function trueAgain(volumes: RightToRun['volumes'], epoch: number): RightToRun['volumes'] {
  return volumes?.map((volume) => (volume.imageEpoch === 0 ? volume : { ...volume, imageEpoch: epoch }));
}

/** The successor in another object holds the right there: nothing of the guest is left here. */
export function givenTo(record: RightToRun | undefined, epoch: number, target: Runner): RightToRun {
  return { ...begin(record, epoch, target), across: true };
}

/** The epoch goes on as if nobody had been named. */
export function withoutSuccessor(record: RightToRun): RightToRun {
  return begin(record, record.epoch, record.holder);
}

/** The target holds the right, on the volumes that it received. */
export function takenBy(record: RightToRun | undefined, attempt: Attempt): RightToRun {
  return begin(record, epochOfTake(attempt), attempt.target, attempt.volumes ?? record?.volumes);
}
