import { ageOf } from '../../api/human-duration.ts';
import type { Colour, Paint } from '../colours.ts';
import { oneLine } from '../redrawn-lines.ts';
import { bar } from '../seen/bar.ts';
import { table } from '../table.ts';
import type { ClusterPicture, MachinePicture, NodePicture } from './picture.ts';

/** The picture of a cluster as lines; pure. */

export interface LineOptions {
  readonly isWide: boolean;
  readonly paint: Paint;
  readonly nowMs: number;
}

/** Of one node so many are shown, unless all are asked for. */
const MACHINES_MAX = 20;
const BAR_WIDTH = 20;
const NOTE_LENGTH_MAX = 100;

const GOOD: ReadonlySet<string> = new Set(['Running', 'Migrating']);
const IDLE: ReadonlySet<string> = new Set(['Stopped', 'Paused', 'Succeeded', 'WaitingForReceiver']);

export function pictureLines(picture: ClusterPicture, options: LineOptions): string[] {
  const { paint } = options;
  const { nodes, elsewhere, denied } = picture;
  const shown = nodes.flatMap((node) => [
    '',
    nodeLine(node, options),
    ...machineLines(node.virtualMachines, options),
    ...arrivingLines(node),
  ]);
  return [
    paint('bold', summaryOf(picture)),
    ...shown,
    ...(elsewhere.length > 0 ? ['', 'On no node', ...machineLines(elsewhere, options)] : []),
    ...(denied.length > 0 ? ['', `You may not look at ${denied.join(', ')}: there may be more than this.`] : []),
    ...(picture.waiting > 0
      ? ['', "'godwit queue' says who waits for what, and 'godwit why VM' what is with one."]
      : []),
  ];
}

/** One sentence for all of it. */
export function summaryOf({ nodes, elsewhere, moving, waiting }: ClusterPicture): string {
  const machines = [...nodes.flatMap(({ virtualMachines }) => virtualMachines), ...elsewhere];
  const running = machines.filter(({ status }) => GOOD.has(status)).length;
  const ready = nodes.filter(({ isReady }) => isReady).length;
  return [
    counted(nodes.length, 'node') + (ready === nodes.length ? '' : ` (${ready} ready)`),
    `${counted(machines.length, 'virtual machine')} (${running} running)`,
    `${moving} moving`,
    `${waiting} waiting to move`,
  ].join(', ');
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function nodeLine(
  { name, isReady, remarks, since, virtualMachines }: NodePicture,
  { paint, isWide, nowMs }: LineOptions,
): string {
  const state = [isReady ? 'Ready' : 'NotReady', ...remarks].join(', ');
  const colour: Colour = !isReady ? 'red' : remarks.length > 0 ? 'yellow' : 'green';
  const more = isWide ? `   ${ageOf(since, nowMs)}` : '';
  return `${paint(colour, '●')} ${paint('bold', name)}   ${state}   ${counted(virtualMachines.length, 'virtual machine')}${more}`;
}

function machineLines(machines: readonly MachinePicture[], options: LineOptions): string[] {
  const { isWide } = options;
  const shown = isWide ? machines : machines.slice(0, MACHINES_MAX);
  const rest = machines.length - shown.length;
  return [
    ...table(shown.map((machine) => machineCells(machine, options))).map((line) => `    ${line}`),
    ...(rest > 0 ? [`    ... and ${rest} more ('godwit status -o wide' shows all)`] : []),
  ];
}

function machineCells(
  { name, status, since, isMigratable, move, waits, note }: MachinePicture,
  { paint, isWide, nowMs }: LineOptions,
): string[] {
  const colour: Colour = GOOD.has(status) ? 'green' : IDLE.has(status) ? 'dim' : 'yellow';
  const said = move
    ? [
        paint('cyan', `→ ${move.to ?? '?'}`),
        ...(move.percent === undefined ? [] : [bar(move.percent, BAR_WIDTH)]),
        move.summary,
      ].join('  ')
    : waits !== undefined
      ? paint('yellow', short(`waits to move: ${waits}`, isWide))
      : paint('yellow', short(note ?? '', isWide));
  return [
    name,
    paint(colour, status),
    ...(isWide ? [ageOf(since, nowMs), isMigratable ? 'migratable' : 'not migratable'] : []),
    said,
  ];
}

function arrivingLines({ arriving }: NodePicture): string[] {
  return arriving.map((machine) => `    ${machine}   ⇠ arriving`);
}

function short(text: string, isWide: boolean): string {
  const line = oneLine(text);
  return isWide || line.length <= NOTE_LENGTH_MAX ? line : `${line.slice(0, NOTE_LENGTH_MAX - 3)}...`;
}
