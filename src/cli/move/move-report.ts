import { unreachable } from '../../api/unreachable.ts';
import { oneLine } from '../redrawn-lines.ts';
import { table } from '../table.ts';
import type { MoveResult, MoveStage, Prospect } from './move.ts';
import { halvesOf } from './halves.ts';
import { plannedReceiver } from './plan.ts';
import { MOVE_LABEL } from './receiving-machine.ts';
import { referencesOf } from './references.ts';
import type { Left } from './removing.ts';
import type { MoveRequest } from './seen.ts';

/** What is told of a move before and after it. Pure. */

/** Where a guest goes. */
export function whereOf({ to, toCluster }: MoveRequest): string {
  return `${to.namespace}/${to.name}${toCluster === undefined ? '' : ` of ${toCluster}`}`;
}

/** What is in the way, each with what to do about it. */
export function obstacleLines({ obstacles }: Pick<Prospect, 'obstacles'>): string[] {
  return obstacles.flatMap(({ what, fix }) => [`  ${oneLine(what)}`, `    ${oneLine(fix)}`]);
}

const STATES = { missing: 'would be created', made: 'was created by this move', there: 'is there' } as const;

/** What would be done, and what is in the way. */
export function forecastLines(prospect: Prospect, request: MoveRequest): string[] {
  const { plan, obstacles, notes } = prospect;
  const where = whereOf(request);
  if (plan.progress === 'over') return [`the guest of ${request.from.name} is at ${where} already (dry run)`];
  if (plan.progress === 'under way') return [`${request.from.name} is on its way to ${where} (dry run)`];
  const rows = [...plan.objects, plannedReceiver(plan)].map(({ resource, object, state, about }) => {
    const { namespace, name } = object.metadata;
    const isBack = resource.plural === 'virtualmachines' && plan.machine.state === 'taken back';
    const what = isBack ? 'was left by the guest, and would wait for it' : STATES[state];
    return [
      resource.kind,
      `${namespace === undefined ? '' : `${namespace}/`}${name}`,
      what,
      state === 'missing' ? about : '',
    ];
  });
  return [
    ...table(rows),
    ...notes.map((note) => `note: ${oneLine(note)}`),
    ...(obstacles.length > 0 ? ['in the way:', ...obstacleLines(prospect)] : []),
    obstacles.length > 0
      ? `${obstacles.length} ${obstacles.length === 1 ? 'thing keeps' : 'things keep'} ${request.from.name} from moving to ${where} (dry run)`
      : `${request.from.name} would move to ${where}${plan.connectURL === '' ? '' : `, through ${plan.connectURL}`} (dry run)`,
  ];
}

/** The same, for programs. */
export function forecastValue({ plan, obstacles, notes }: Prospect, request: MoveRequest): object {
  const { from, to, toCluster } = request;
  const isNew = plan.progress === 'new';
  return {
    from,
    to: { ...to, cluster: toCluster },
    progress: plan.progress,
    isPossible: obstacles.length === 0,
    connectURL: plan.connectURL === '' ? undefined : plan.connectURL,
    objects: (isNew ? [...plan.objects, plannedReceiver(plan)] : []).map(({ resource, object, state, about }) => ({
      kind: resource.kind,
      namespace: object.metadata.namespace,
      name: object.metadata.name,
      state,
      about,
    })),
    notes,
    obstacles: obstacles.map(({ what, fix }) => ({ what, fix })),
  };
}

/** Of somebody who has stopped before anything was done. */
export const NOTHING_CHANGED = 'stopped: nothing was changed';

/** What somebody who has stopped a move leaves behind, and how it goes on. */
export function interruptionText(stage: MoveStage, { from, to }: Pick<MoveRequest, 'from' | 'to'>): string {
  switch (stage.kind) {
    case 'looking':
      return NOTHING_CHANGED;
    case 'making':
      return `stopped: nothing moves; the same command goes on, and what was made already in ${to.namespace} has the label ${MOVE_LABEL}=${stage.id}`;
    case 'removing':
      return `stopped: the move failed, and the guest goes on in ${from.namespace}; what is not removed yet has the label ${MOVE_LABEL}=${stage.id}, on both sides`;
    case 'moving':
      return `stopped: the move goes on by itself; the same command follows it again, 'kubectl delete vmim ${stage.halves.send} -n ${from.namespace}' calls it off`;
    default:
      return unreachable(stage);
  }
}

/** What has become of the guest, and what is left where it was. */
export function endLines({ seen, plan, notes }: Prospect, request: MoveRequest): string[] {
  const { from, to, toCluster, back } = request;
  const claims = referencesOf(seen.source.machine)
    .claims.filter(({ isBelow }) => !isBelow)
    .map(({ name }) => name);
  const there = toCluster === undefined ? `in ${to.namespace}` : 'there';
  const remove = [
    `kubectl delete vm ${from.name} -n ${from.namespace}`,
    ...(claims.length > 0 ? [`kubectl delete pvc ${claims.join(' ')} -n ${from.namespace}`] : []),
  ].join(' && ');
  return [
    ...notes.map((note) => `note: ${oneLine(note)}`),
    `the guest of ${from.name} runs in ${whereOf(request)}`,
    `${from.namespace}/${from.name} is halted and kept${claims.length > 0 ? `, with its claims ${claims.join(', ')}` : ''}`,
    `  to remove it:          ${remove}`,
    `  to get the guest back: godwit move ${to.name} -n ${to.namespace} --to-namespace ${from.namespace}${from.name === to.name ? '' : ` --name ${from.name}`}${back}`,
    `what was made has the label ${MOVE_LABEL}=${plan.id}: here the half ${halvesOf(plan.id, '').send}, ${there} all else`,
  ];
}

/** What is left on each side. */
export function leftLines({ source, target }: Left): string[] {
  return [
    ...(source.length > 0 ? [`left where the guest is: ${source.join(', ')}`] : []),
    ...(target.length > 0 ? [`left at the target: ${target.join(', ')}`] : []),
  ];
}

/** Why it failed, what runs where, and what could not be removed. */
export function failureText(result: Extract<MoveResult, { kind: 'failed' }>, { from }: MoveRequest): string {
  const { reason, why, left } = result;
  const lines = leftLines(left);
  return [
    `the move failed (${reason}): ${oneLine(why)}`,
    `the guest of ${from.name} goes on in ${from.namespace}${lines.length === 0 ? '; what was made for the move is removed' : ''}`,
    ...lines,
  ].join('\n');
}
