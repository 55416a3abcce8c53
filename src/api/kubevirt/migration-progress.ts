import { type Infer, integer, long, moment, needed, object, text } from '../typed-schema.ts';

/** How far a copy is, and how long it will take. Written by the source's agent, and passed on to the migration. */

const bytes = (description: string) => long(description, { minimum: 0 });
const seconds = (description: string) => integer(description, { minimum: 0 });

export const migrationProgress = object('How far the copy is.', {
  percent: needed(integer('Percent that are done. Never less than before.', { minimum: 0, maximum: 100 })),
  summary: text('The same for people, with the time that is left.'),
  secondsLeft: seconds('Seconds that it will probably take; absent while that is unknown.'),
  secondsLeftMin: seconds('Seconds that it will take at least, as things are.'),
  secondsLeftMax: seconds('Seconds that it will take at most, as things are; absent where it may never end.'),
  iteration: integer('The pass over memory that it is in.', { minimum: 0 }),
  totalBytes: bytes('What there is to copy, of memory and disks.'),
  transferredBytes: bytes('What was sent.'),
  remainingBytes: bytes('What is left of this pass.'),
  throughputBytesPerSecond: bytes('What is sent each second.'),
  dirtyRateBytesPerSecond: bytes('What the guest writes each second.'),
  time: moment('When this was so.'),
});

export type MigrationProgress = Infer<typeof migrationProgress>;

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** Progress as a column of `kubectl get` shows it, such as `42%, 12s left (8s to 30s)`. */
export function progressSummary(progress: Omit<MigrationProgress, 'summary'>): string {
  const { percent, secondsLeft, secondsLeftMin, secondsLeftMax } = progress;
  if (secondsLeft === undefined || percent === 100) return `${percent}%`;
  const left = `${percent}%, ${duration(secondsLeft)} left`;
  if (secondsLeftMin === undefined) return left;
  if (secondsLeftMax === undefined) return `${left} (${duration(secondsLeftMin)} or more)`;
  return `${left} (${duration(secondsLeftMin)} to ${duration(secondsLeftMax)})`;
}

/** The last word about a copy that is over, of which its source had other things to do than to tell. */
export function wholeProgress(progress: MigrationProgress | undefined, time: string | undefined): MigrationProgress {
  const { secondsLeft: _, secondsLeftMin: _min, secondsLeftMax: _max, summary: _summary, ...known } = progress ?? {};
  const done = { ...known, percent: 100, remainingBytes: 0, ...(time === undefined ? {} : { time }) };
  return { ...done, summary: progressSummary(done) };
}

function duration(seconds: number): string {
  if (seconds < MINUTE) return `${seconds}s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)}m${seconds % MINUTE}s`;
  return `${Math.floor(seconds / HOUR)}h${Math.floor((seconds % HOUR) / MINUTE)}m`;
}
