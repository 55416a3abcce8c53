import { ageOf } from '../../api/human-duration.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Paint } from '../colours.ts';
import { oneLine } from '../redrawn-lines.ts';
import { table } from '../table.ts';
import type { Queue, Waiting } from './queue.ts';
import { priorityText, slotsText, waitingWords } from './queue-words.ts';

/** What `godwit queue` prints; pure. */

/** One that waits, for programs. */
export interface WaitingReport {
  readonly place: number | undefined;
  readonly virtualMachine: string;
  readonly migration: string;
  readonly class: string;
  readonly priority: number;
  readonly causes: readonly string[];
  readonly deadline: string | undefined;
  readonly since: string | undefined;
  readonly phase: string;
  readonly why: string;
  readonly behind: readonly string[];
  readonly remedy: string;
}

/** The whole queue, for programs. */
export interface QueueReport {
  readonly limits: Queue['rules']['limits'];
  readonly moving: readonly { readonly virtualMachine: string; readonly migration: string; readonly phase: string }[];
  readonly waiting: readonly WaitingReport[];
}

export function queueReport(queue: Queue, nowMs: number): QueueReport {
  return {
    limits: queue.rules.limits,
    moving: queue.moving.map(({ machine, migration }) => ({
      virtualMachine: machine,
      migration: keyOf(migration),
      phase: migration.status?.phase ?? '',
    })),
    waiting: queue.waiting.map((waiting) => waitingReport(waiting, queue, nowMs)),
  };
}

function waitingReport(waiting: Waiting, queue: Queue, nowMs: number): WaitingReport {
  const { migration, machine, place, priority } = waiting;
  const { causes = [], phase = '' } = migration.status ?? {};
  return {
    place,
    virtualMachine: machine,
    migration: keyOf(migration),
    class: priorityText(priority),
    priority,
    causes: causes.map(({ cause }) => cause),
    deadline: causes.find(({ deadline }) => deadline)?.deadline ?? undefined,
    since: migration.metadata.creationTimestamp ?? undefined,
    phase,
    ...waitingWords(waiting, queue, nowMs),
  };
}

/** Behind so many others are named. */
const NAMED_MAX = 5;
const HEAD = ['#', 'VIRTUAL MACHINE', 'CLASS', 'WAITS'];
const WIDE_HEAD = ['MIGRATION', 'PRIORITY', 'CAUSES', 'DEADLINE', 'PHASE'];

/** The queue for people. */
export function queueLines(
  queue: Queue,
  nowMs: number,
  options: { readonly isWide: boolean; readonly paint: Paint },
): string[] {
  const { paint, isWide } = options;
  const { waiting } = queueReport(queue, nowMs);
  const head = isWide ? [...HEAD, ...WIDE_HEAD] : HEAD;
  const rows = waiting.map((each) => [
    each.place === undefined ? '-' : String(each.place),
    paint('bold', each.virtualMachine),
    each.class,
    ageOf(each.since, nowMs),
    ...(isWide ? wideCells(each) : []),
  ]);
  const summary = `${waiting.length === 0 ? 'Nobody waits' : waiting.length === 1 ? 'One waits' : `${waiting.length} wait`}: ${slotsText(queue)}.`;
  if (waiting.length === 0) return [summary];
  const [first = '', ...lines] = table([head, ...rows]);
  const told = waiting.flatMap((each, index) => [lines[index] ?? '', ...details(each, paint)]);
  return [paint('dim', first), ...told, '', summary];
}

function wideCells({ migration, priority, causes, deadline, phase }: WaitingReport): string[] {
  return [migration, String(priority), causes.join(',') || '<none>', deadline ?? '<none>', phase || '<new>'];
}

function details({ why, behind, remedy }: WaitingReport, paint: Paint): string[] {
  const indent = '    ';
  const rest = behind.length - NAMED_MAX;
  const named = [...behind.slice(0, NAMED_MAX), ...(rest > 0 ? [`${rest} more`] : [])].join(', ');
  return [
    `${indent}${paint('yellow', oneLine(why))}`,
    ...(named === '' ? [] : [`${indent}behind ${oneLine(named)}`]),
    `${indent}${oneLine(remedy)}`,
  ];
}
