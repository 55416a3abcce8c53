/** What a guest's serial lines prove of a move; pure. */

/** A line by which a guest of ours says that it lives. */
export interface Sign {
  /** Drawn when it boots. */
  readonly boot: string;
  /** How often it has spoken since. */
  readonly count: number;
  readonly memory: string;
  readonly disk: string;
}

/** What a log says: signs of life, and how many lines before each could not be read. */
interface ReadSign extends Sign {
  readonly unreadableBefore: number;
}

const SIGN = /^guest boot=([0-9a-f]{32}) count=(\d{1,15}) uptime=[\d.]+ memory=(\S+) disk=(\S+)$/;
/** Of what begins like a sign, or goes on like one, something was one. */
const SPOILT = /guest boot=|count=\d|uptime=|memory=/;

/** The signs of life in a log. */
export function signsIn(log: string): ReadSign[] {
  const signs: ReadSign[] = [];
  let unreadable = 0;
  // What follows the last line break is still being said.
  for (const line of log.split('\n').slice(0, -1)) {
    const [, boot, count, memory = '', disk = ''] = SIGN.exec(line.trimEnd()) ?? [];
    if (boot === undefined) {
      if (SPOILT.test(line)) unreadable++;
      continue;
    }
    signs.push({ boot, count: Number(count), memory, disk, unreadableBefore: unreadable });
    unreadable = 0;
  }
  return signs;
}

/** One thing that is to hold after a move, and what was seen of it. */
export interface Finding {
  readonly title: string;
  readonly holds: boolean;
  readonly text: string;
}

/** What holds of a guest that had said `before` before it moved, by all that it has ever said. */
export function findingsOf(before: Sign, log: string): Finding[] {
  const signs = signsIn(log);
  const start = signs.findIndex(({ boot }) => boot === before.boot);
  const since = start < 0 ? [] : signs.slice(start);
  return [sameBoot(before, since), nothingLost(before, since), nothingSpoilt(since)];
}

function sameBoot({ boot }: Sign, since: readonly Sign[]): Finding {
  const title = 'same boot';
  const other = since.find((sign) => sign.boot !== boot)?.boot;
  if (since.length === 0) return { title, holds: false, text: `its log says nothing of boot ${boot}` };
  if (other !== undefined) return { title, holds: false, text: `it was ${boot}, and is ${other}` };
  return { title, holds: true, text: `${boot}, before and after` };
}

/** Each count follows the one before it. A line that the console has spoilt stands for the count that is in its place. */
function nothingLost(before: Sign, since: readonly ReadSign[]): Finding {
  const title = 'nothing lost';
  const [first, ...rest] = since.filter(({ boot }) => boot === before.boot);
  if (!first) return { title, holds: false, text: 'none of its counts can be found' };
  let last = first.count;
  for (const { count, unreadableBefore } of rest) {
    if (count <= last) return { title, holds: false, text: `count ${count} is there again after ${last}` };
    if (count - last - 1 > unreadableBefore)
      return { title, holds: false, text: `count ${count} comes after ${last}: what is between is missing` };
    last = count;
  }
  if (last <= before.count) return { title, holds: false, text: `nothing was heard of it after count ${last}` };
  return { title, holds: true, text: `counts ${first.count} to ${last}: none is missing, none is there twice` };
}

function nothingSpoilt(since: readonly Sign[]): Finding {
  const title = 'nothing spoilt';
  const bad = since.find(({ memory, disk }) => memory !== 'ok' || disk !== 'ok');
  if (bad) return { title, holds: false, text: `at count ${bad.count}: memory ${bad.memory}, disk ${bad.disk}` };
  return { title, holds: since.length > 0, text: 'its memory and its disk hold what it wrote there' };
}

/** Moments at which a guest was heard, in milliseconds, in the order of time. */
export interface Heard {
  readonly inSource: readonly number[];
  readonly inTarget: readonly number[];
}

/** For how long a guest was silent when it went from one machine to the other, and is otherwise; undefined where unheard. */
export function silenceOf({ inSource, inTarget }: Heard): { silentMs: number; usualMs: number } | undefined {
  const [first] = inTarget;
  const last = inSource.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const gaps = [inSource, inTarget].flatMap((times) => times.slice(1).map((time, index) => time - (times[index] ?? 0)));
  const usualMs = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 0;
  return { silentMs: Math.max(0, first - last), usualMs };
}
