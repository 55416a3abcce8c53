import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt } from './attempt.ts';

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

/** The holder names who may be granted the right next. */
export function withSuccessor(record: RightToRun, successor: Runner): RightToRun {
  return { ...record, successor };
}

/** The epoch goes on as if nobody had been named. */
export function withoutSuccessor(record: RightToRun): RightToRun {
  return begin(record, record.epoch, record.holder);
}

/** The target holds the right, on the volumes that it received. */
export function takenBy(record: RightToRun, attempt: Attempt): RightToRun {
  return begin(record, attempt.epoch + 1, attempt.target, attempt.volumes ?? record.volumes);
}
