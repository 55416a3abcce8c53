import { humanDuration } from '../../api/human-duration.ts';
import type { MigrationCause, ServedCause } from '../../api/kubevirt/migration-cause.ts';
import { progressSummary } from '../../api/kubevirt/migration-progress.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { unreachable } from '../../api/unreachable.ts';
import { guestKeyOf } from '../../control/migration/keys.ts';
import { targetPodFacts } from '../../control/migration/target-pod.ts';
import type { LauncherPod } from '../../control/resources.ts';
import { findCondition } from '../../kube/conditions.ts';
import { keyOf, splitKey } from '../../kube/resource.ts';
import {
  NEWS_TIMEOUT_MS,
  podDeadline,
  PREPARATION_TIMEOUT_MS,
  SLOT_TIMEOUT_MS,
  START_TIMEOUT_MS,
} from '../../migration/phase/deadlines.ts';
import { ownState, phaseBeganMs } from '../../migration/phase/facts.ts';
import type { Queue } from '../queue/queue.ts';
import { priorityText, waitingWords } from '../queue/queue-words.ts';
import { type Answer, sentence } from './answer.ts';
import { failureRemedy } from './failure-remedies.ts';

/** What is with a migration, in words; pure. */

export interface MigrationScene {
  readonly migration: VirtualMachineInstanceMigration;
  readonly guest: VirtualMachineInstance | undefined;
  readonly targetPod: LauncherPod | undefined;
  readonly queue: Queue;
  readonly nowMs: number;
}

type Told = Omit<Answer, 'subject'>;

/** Answers why a migration is as it is. */
export function whyMigration(scene: MigrationScene): Answer {
  const { migration } = scene;
  return { subject: `migration ${keyOf(migration)} of ${guestKeyOf(migration)}`, ...toldOf(scene) };
}

function toldOf(scene: MigrationScene): Told {
  const { migration, queue, nowMs } = scene;
  const { phase = '' } = migration.status ?? {};
  if (phase === 'Succeeded') return succeeded(scene);
  if (phase === 'Failed') return failed(scene);
  const abort = findCondition(migration.status?.conditions, 'migrationAbortRequested');
  if (abort?.status === 'True') return stopping(scene, abort.message ?? 'somebody wants it to stop');
  const waiting = queue.waiting.find((each) => each.migration.metadata.uid === migration.metadata.uid);
  if (waiting) {
    const { why, behind, remedy } = waitingWords(waiting, queue, nowMs);
    return {
      state:
        waiting.place === undefined ? 'It waits.' : `It waits for its turn: it is number ${waiting.place} in line.`,
      why: [sentence(why), ...(behind.length > 0 ? [`Before it: ${behind.join(', ')}.`] : []), ...asked(scene)],
      next: sentence(remedy),
      actions: [...cancelAction(scene), "see all who wait: 'godwit queue'"],
    };
  }
  return underWay(scene, phase);
}

/** One that has its slots. */
function underWay(scene: MigrationScene, phase: MigrationPhase): Told {
  const { migration, targetPod } = scene;
  const target = migration.status?.migrationState?.targetNode ?? targetPod?.spec?.nodeName;
  const actions = cancelAction(scene);
  const common = { why: asked(scene), actions };
  switch (phase) {
    case '':
    case 'Pending':
      return {
        ...common,
        state: 'It has its slots, and begins.',
        next: 'A pod is made for it, which looks for a node.',
      };
    case 'WaitingForSync':
    case 'Synchronizing':
      return {
        ...common,
        state: 'It looks for its other half.',
        next: 'It goes on once both halves have found each other, and fails after ten minutes if they do not.',
      };
    case 'Scheduling':
      return { ...common, state: podState(targetPod), next: podNext(scene) };
    case 'Scheduled':
      return {
        ...common,
        state: `Its pod is ready${onNode(target)}, and it waits for its slots there.`,
        next: `It is handed to the agents of both nodes.${leftText(scene, phase, SLOT_TIMEOUT_MS)}`,
      };
    case 'PreparingTarget':
      return {
        ...common,
        state: `A machine that waits for the guest is being started${onNode(target)}.`,
        next: `The source compares both machines, and begins to copy.${leftText(scene, phase, PREPARATION_TIMEOUT_MS)}`,
      };
    case 'TargetReady':
      return {
        ...common,
        state: `The machine${onNode(target)} is ready for the guest.`,
        next: `The source begins to copy.${leftText(scene, phase, START_TIMEOUT_MS)}`,
      };
    case 'Running':
      return running(scene, target);
    case 'Succeeded':
    case 'Failed':
      return { ...common, state: 'It is over.', next: 'Nothing.' };
    default:
      return unreachable(phase);
  }
}

function running(scene: MigrationScene, target: string | undefined): Told {
  const state = stateOf(scene);
  const progress = state?.progress ?? scene.migration.status?.progress;
  const decision = state?.decisions?.at(-1);
  const isPostCopy = state?.mode === 'PostCopy';
  const how = isPostCopy
    ? 'The guest runs at the target already, and the rest of its memory follows'
    : 'The guest is being copied';
  const told = progress ? `: ${progress.summary ?? progressSummary(progress)}` : '';
  return {
    state: `${how}${target === undefined ? '' : `, to ${target}`}${told}.`,
    why: [
      ...(decision ? [sentence(decision.message ?? `${decision.decision}: ${decision.reason}`)] : []),
      ...asked(scene),
    ],
    next: isPostCopy
      ? 'It goes on to its end; there is no way back any more.'
      : `When little enough is left the guest stands still for a moment, and goes on there. A source that tells nothing for ${humanDuration(NEWS_TIMEOUT_MS)} is asked to stop.`,
    actions: isPostCopy ? [] : cancelAction(scene),
  };
}

function succeeded({ migration }: MigrationScene): Told {
  const { sourceNode, targetNode, startTimestamp, endTimestamp, downtimeMs, mode } =
    migration.status?.migrationState ?? {};
  const tookMs = Date.parse(endTimestamp ?? '') - Date.parse(startTimestamp ?? '');
  const details = [
    ...(Number.isNaN(tookMs) ? [] : [`the copy took ${humanDuration(tookMs)}`]),
    ...(downtimeMs === undefined ? [] : [`the guest stood still for ${downtimeMs} ms`]),
    ...(mode === undefined || mode === '' || mode === 'PreCopy' ? [] : [`it went over in ${mode}`]),
  ];
  return {
    state: `The guest has moved${sourceNode ? ` from ${sourceNode}` : ''}${targetNode ? ` to ${targetNode}` : ''}.`,
    why: details.length > 0 ? [sentence(details.join(', '))] : [],
    next: 'Nothing: it is kept for a while, so that it can be looked at.',
    actions: [],
  };
}

function failed({ migration }: MigrationScene): Told {
  const condition = findCondition(migration.status?.conditions, 'migrationFailed');
  const { failureReason } = migration.status?.migrationState ?? {};
  const message = condition?.message ?? failureReason ?? 'nobody said why';
  const { namespace, name } = splitKey(guestKeyOf(migration));
  return {
    state: `It has failed${condition?.reason === undefined ? '' : ` (${condition.reason})`}; the guest goes on where it is.`,
    why: [sentence(message), ...(failureReason && !message.includes(failureReason) ? [sentence(failureReason)] : [])],
    next: isClustersOwn(migration)
      ? 'If the guest still has to leave its node, it is tried again by itself, after a while that grows.'
      : 'Nothing, unless somebody asks for it again.',
    actions: [failureRemedy(condition?.reason), `try it again: 'godwit migrate ${name} -n ${namespace} --watch'`],
  };
}

function stopping(scene: MigrationScene, message: string): Told {
  return {
    state: 'It is being stopped.',
    why: [sentence(message), ...asked(scene)],
    next: stateOf(scene)?.mode === 'PostCopy' ? 'It goes on to its end.' : 'The guest goes on where it is.',
    actions: [],
  };
}

function podState(pod: LauncherPod | undefined): string {
  if (!pod) return 'A pod is being made for it.';
  if (!pod.spec?.nodeName) return 'A node is being found for it.';
  return `Its pod is being started on ${pod.spec.nodeName}.`;
}

function podNext({ migration, targetPod, nowMs }: MigrationScene): string {
  const next = 'The guest is copied once its pod runs.';
  if (!targetPod) return next;
  const { atMs } = podDeadline(migration, targetPodFacts(targetPod));
  return `${next} If it does not within ${humanDuration(Math.max(0, atMs - nowMs))}, the migration fails, and the guest stays.`;
}

function leftText({ migration, nowMs }: MigrationScene, phase: MigrationPhase, timeoutMs: number): string {
  const beganMs = phaseBeganMs(migration, phase);
  if (beganMs === undefined) return '';
  return ` If that takes longer than another ${humanDuration(Math.max(0, beganMs + timeoutMs - nowMs))}, it fails, and the guest stays.`;
}

function onNode(node: string | undefined): string {
  return node === undefined || node === '' ? '' : ` on ${node}`;
}

function stateOf({ migration, guest }: MigrationScene) {
  return ownState({ migration, guest }) ?? migration.status?.migrationState;
}

function cancelAction({ migration }: MigrationScene): string[] {
  const { namespace, name } = splitKey(guestKeyOf(migration));
  return [`call it off: 'godwit migrate-cancel ${name} -n ${namespace}'`];
}

const CAUSES: { readonly [cause in MigrationCause]: string } = {
  User: 'somebody asked for it',
  APIEviction: 'its node is being drained',
  Preemption: 'a pod that is more important needs its room',
  NoExecuteTaint: 'its node has a taint that it does not tolerate',
  DrainTaint: 'its node has the drain taint',
  WorkloadUpdate: 'it gets another launcher, or a change takes effect',
  Descheduler: 'a descheduler wants it elsewhere',
  CrossCluster: 'it goes to another namespace or cluster',
};

/** A cause in words. */
export function causeText({
  cause,
  deadline,
}: Pick<ServedCause, 'cause'> & { readonly deadline?: string | null }): string {
  return `${CAUSES[cause]}${deadline ? `, and it has to be gone by ${deadline}` : ''}`;
}

/** Why the guest moves at all. */
function asked({ migration }: MigrationScene): string[] {
  const causes = migration.status?.causes ?? [];
  const { effectivePriority = 0 } = migration.status ?? {};
  const texts = causes.map(causeText);
  const why = texts.length > 0 ? texts.join('; ') : CAUSES[migration.spec.cause ?? 'User'];
  return [`It is to move since ${why} (class: ${priorityText(effectivePriority)}).`];
}

function isClustersOwn({ status, spec }: VirtualMachineInstanceMigration): boolean {
  const causes = status?.causes?.map(({ cause }) => cause) ?? [spec.cause ?? 'User'];
  return causes.some((cause) => cause !== 'User' && cause !== 'CrossCluster');
}
