import { humanDuration } from '../../api/human-duration.ts';
import { causesOf, isMarked } from '../../api/kubevirt/evacuation.ts';
import { evictionOutcomeOf, evictionStrategyOf } from '../../api/kubevirt/eviction-strategy.ts';
import { grantedAwayFix } from '../../api/kubevirt/granted-away.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { unreachable } from '../../api/unreachable.ts';
import { hindranceOf } from '../../control/evacuation/hindrances.ts';
import { destinationOf } from '../../control/moved-away.ts';
import type { LauncherPod } from '../../control/resources.ts';
import { findCondition, isConditionTrue } from '../../kube/conditions.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { sourceNodeOf } from '../../migration/phase/facts.ts';
import { isOutOfService } from '../../migration/right-to-run/out-of-service.ts';
import type { Queue } from '../queue/queue.ts';
import { type Answer, closed, sentence } from './answer.ts';
import { causeText, whyMigration } from './why-migration.ts';

/** What is with a virtual machine, in words; pure. */

export interface MachineScene {
  readonly namespace: string;
  readonly name: string;
  /** At least one of the two is there. */
  readonly machine: VirtualMachine | undefined;
  readonly guest: VirtualMachineInstance | undefined;
  /** All of its migrations. */
  readonly migrations: readonly VirtualMachineInstanceMigration[];
  /** The pod that the guest moves to. */
  readonly targetPod: LauncherPod | undefined;
  /** The node that the guest is on, as far as one may see it. */
  readonly node: Node | undefined;
  readonly queue: Queue;
  readonly configuration: KubeVirtConfiguration;
  /** Nodes that are to be heard before a guest starts, since the data of the API was restored. */
  readonly unheard?: readonly string[];
  /** Why no node takes the guest's pod, node by node, where it has none; undefined where that is not known. */
  readonly unfitness: string | undefined;
  readonly nowMs: number;
}

type Told = Omit<Answer, 'subject'>;

/** Answers why a virtual machine is as it is. */
export function whyMachine(scene: MachineScene): Answer {
  const { machine, namespace, name } = scene;
  const kind = machine ? 'virtual machine' : 'virtual machine instance';
  return { subject: `${kind} ${namespace}/${name}`, ...toldOf(scene) };
}

function toldOf(scene: MachineScene): Told {
  const { machine, guest } = scene;
  if (machine?.metadata.deletionTimestamp !== undefined) return deleted(scene);
  if (isGone(scene)) return goneAway(scene);
  if (!guest || isOver(guest)) return withoutGuest(scene);
  if (guest.metadata.deletionTimestamp !== undefined) return stopping(scene, guest);
  const { phase = '' } = guest.status ?? {};
  switch (phase) {
    case '':
    case 'Pending':
    case 'Scheduling':
      return scheduling(scene, guest);
    case 'Scheduled':
      return starting(scene, guest);
    case 'WaitingForSync':
      return receiving(scene);
    case 'Unknown':
      return unheard(scene, guest);
    case 'Running':
      return running(scene, guest);
    case 'Succeeded':
    case 'Failed':
      return withoutGuest(scene);
    default:
      return unreachable(phase);
  }
}

function isOver({ status }: VirtualMachineInstance): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

const at = ({ name, namespace }: MachineScene): string => `${name} -n ${namespace}`;

function deleted(scene: MachineScene): Told {
  return {
    state: 'It is being deleted.',
    why: ['Somebody deleted it.'],
    next: scene.guest ? 'It goes when its guest has ended, within its grace period.' : 'It goes.',
    actions: scene.guest ? [`end the guest at once: 'godwit stop ${at(scene)} --force --grace-period 0'`] : [],
  };
}

function isGone({ machine, guest }: MachineScene): boolean {
  if (guest && isAway(guest.status?.rightToRun)) return true;
  return !guest && machine?.status?.rightToRun?.grantedAway === true;
}

function goneAway(scene: MachineScene): Told {
  const { guest, machine, namespace, name } = scene;
  const told = findCondition(machine?.status?.conditions, 'GuestMovedAway')?.message;
  return {
    state: `Its guest runs elsewhere${guest ? `: ${destinationOf(guest)}` : ''}.`,
    why: [told === undefined ? 'It was moved to another namespace or cluster.' : sentence(told)],
    next: 'Nothing runs here: what is here is kept, and started by nobody.',
    actions: [grantedAwayFix(namespace, name)],
  };
}

/** Why a machine has no guest. */
function withoutGuest(scene: MachineScene): Told {
  const { machine, guest, nowMs } = scene;
  if (!machine) {
    const end = guest?.status?.phase === 'Succeeded' ? 'It has ended well.' : 'It has ended.';
    return { state: end, why: conditionTexts(guest), next: 'Nothing: no VirtualMachine starts it again.', actions: [] };
  }
  const { startFailure, conditions, stateChangeRequests } = machine.status ?? {};
  const failure = findCondition(conditions, 'Failure');
  const strategy = effectiveRunStrategy(machine.spec);
  if (startFailure?.consecutiveFailCount) {
    const leftMs = Date.parse(startFailure.retryAfterTimestamp ?? '') - nowMs;
    return {
      state: `It does not start: it has failed ${startFailure.consecutiveFailCount} times in a row.`,
      why: [sentence(failure?.message ?? 'the guest ended before it ran')],
      next: leftMs > 0 ? `It is tried again in ${humanDuration(leftMs)}.` : 'It is tried again.',
      actions: [`read what it said: 'godwit logs ${at(scene)}'`, `let it be: 'godwit stop ${at(scene)}'`],
    };
  }
  if (failure?.status === 'True')
    return {
      state: 'It does not run, though it should.',
      why: [sentence(failure.message ?? failure.reason ?? 'nobody said why')],
      next: 'It is tried again by itself, and whenever what it needs changes.',
      actions: [`see what it needs: 'kubectl describe vm ${at(scene)}'`],
    };
  if (stateChangeRequests?.some(({ action }) => action === 'Start'))
    return { state: 'It is about to start.', why: ['Somebody asked for it.'], next: 'Its guest is made.', actions: [] };
  return asWished(scene, strategy);
}

const STOPPED = 'It is stopped.';

function asWished(scene: MachineScene, strategy: ReturnType<typeof effectiveRunStrategy>): Told {
  const start = `start it: 'godwit start ${at(scene)}'`;
  const why = [`Its runStrategy is ${strategy}.`];
  switch (strategy) {
    case 'Halted':
      return { state: STOPPED, why, next: 'Nothing.', actions: [start] };
    case 'Manual':
    case 'Once':
    case 'RerunOnFailure':
      return {
        state: STOPPED,
        why: [...why, ...(scene.guest ? conditionTexts(scene.guest) : [])],
        next: strategy === 'RerunOnFailure' ? 'Nothing: its guest ended well.' : 'Nothing, until somebody starts it.',
        actions: [start],
      };
    case 'Always':
      return { state: 'It is about to start.', why, next: 'Its guest is made.', actions: [] };
    case 'WaitAsReceiver':
      return receiving(scene);
    default:
      return unreachable(strategy);
  }
}

function receiving(scene: MachineScene): Told {
  return {
    state: 'It waits for a guest that comes from another namespace or cluster.',
    why: ['Its runStrategy is WaitAsReceiver.'],
    next: 'It runs once the guest has come.',
    actions: [`move one here: 'godwit move VM --to-namespace ${scene.namespace} --name ${scene.name}'`],
  };
}

function stopping(scene: MachineScene, guest: VirtualMachineInstance): Told {
  const { terminationGracePeriodSeconds: seconds } = guest.spec;
  return {
    state: 'It is stopping.',
    why: ['Its guest was asked to shut down.'],
    next: `It ends when it has, or after its grace period${seconds === undefined ? '' : ` of ${humanDuration(seconds * 1000)}`}.`,
    actions: [`end it at once: 'godwit stop ${at(scene)} --force --grace-period 0'`],
  };
}

function scheduling(scene: MachineScene, guest: VirtualMachineInstance): Told {
  const { conditions } = guest.status ?? {};
  const scheduled = findCondition(conditions, 'PodScheduled');
  const synchronized = findCondition(conditions, 'Synchronized');
  const stop = `let it be: 'godwit stop ${at(scene)}'`;
  if (scheduled?.status === 'False')
    return {
      state: 'It does not start: no node takes it.',
      why: scene.unfitness === undefined ? [sentence(scheduled.message ?? 'no node fits')] : perNode(scene.unfitness),
      next: 'It starts as soon as a node takes it.',
      actions: ['give a node room for it, or what it asks for; or ask for less', stop],
    };
  if (synchronized?.status === 'False')
    return {
      state: `It does not start${synchronized.reason === undefined ? '' : ` (${synchronized.reason})`}.`,
      why: [sentence(synchronized.message ?? 'nobody said why')],
      next: 'It is tried again by itself.',
      actions: [`see what it needs: 'kubectl describe vmi ${at(scene)}'`, stop],
    };
  return {
    state: 'It is starting.',
    why: ['Its pod is being placed, or prepared.'],
    next: 'It runs once its node has started it.',
    actions: [],
  };
}

/** What each node lacks, a line each. */
function perNode(unfitness: string): string[] {
  return unfitness.split('; ').map(closed);
}

function starting(scene: MachineScene, guest: VirtualMachineInstance): Told {
  const node = sourceNodeOf(guest) ?? 'its node';
  const { unheard: nodes = [] } = scene;
  if (nodes.length > 0)
    return {
      state: `It is not started on ${node} yet.`,
      why: [`The data of the API was restored, and these nodes were not heard since: ${nodes.join(', ')}.`],
      next: 'It starts once their agents have said what their journals hold, or they were given up: it might run there.',
      actions: [
        'bring them and their agents back',
        `only of a machine that is off for good: 'kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute'`,
      ],
    };
  const wrong = findCondition(guest.status?.conditions, 'Synchronized');
  const isWrong = wrong?.status === 'False';
  return {
    state: `It is being started on ${node}.`,
    why: isWrong ? [sentence(`${wrong.reason ?? ''}: ${wrong.message ?? ''}`)] : [`The agent of ${node} has it.`],
    next: isWrong ? 'It is tried again by itself.' : 'It runs in a moment.',
    actions: [`look at the node: 'godwit why node ${node}'`, `let it be: 'godwit stop ${at(scene)}'`],
  };
}

/** Of a guest whose node says nothing nobody knows whether it runs. */
function unheard({ node }: MachineScene, guest: VirtualMachineInstance): Told {
  const name = sourceNodeOf(guest) ?? 'its node';
  const told = findCondition((node?.status?.conditions ?? []) as Parameters<typeof findCondition>[0], 'Ready')?.message;
  if (isOutOfService(node))
    return {
      state: `It was on ${name}, which was given up.`,
      why: ['Somebody says that nothing of that node runs any more (taint out-of-service).'],
      next: 'Its right to run is taken back, and it starts elsewhere if it should run.',
      actions: [],
    };
  return {
    state: `Nobody knows whether it runs: ${name} is not heard of.`,
    why: [sentence(told ?? 'its node does not answer')],
    next: 'It is started nowhere else until the node is back, or was given up: it might run twice.',
    actions: [
      `bring ${name} back, and its agent`,
      `only once the machine is off for good: 'kubectl taint node ${name} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute'`,
    ],
  };
}

function running(scene: MachineScene, guest: VirtualMachineInstance): Told {
  const { node, migrations, configuration, nowMs } = scene;
  const conditions = (node?.status?.conditions ?? []) as Parameters<typeof findCondition>[0];
  if (node && !isConditionTrue(conditions, 'Ready')) return unheard(scene, guest);
  const name = sourceNodeOf(guest) ?? 'a node';
  const isPaused = isConditionTrue(guest.status?.conditions, 'Paused');
  const state = isPaused ? `It is paused on ${name}` : `It runs on ${name}`;
  const hindrance = isMarked(guest) ? hindranceOf(guest, migrations, configuration, nowMs) : undefined;
  const current = migrations.find((each) => !isFinalMigration(each));
  if (current) return moving(scene, current, { state, hindrance: hindrance?.message });
  if (isMarked(guest)) return leaving(scene, guest, { state, hindrance: hindrance?.message });
  return staying(scene, guest, state);
}

interface RunningWords {
  readonly state: string;
  /** What keeps it from leaving, if it has to. */
  readonly hindrance: string | undefined;
}

function moving(
  scene: MachineScene,
  migration: VirtualMachineInstanceMigration,
  { state, hindrance }: RunningWords,
): Told {
  const { guest, targetPod, queue, nowMs } = scene;
  const told = whyMigration({ migration, guest, targetPod, queue, nowMs });
  const blocked =
    hindrance !== undefined && !told.why.some((line) => line.includes(hindrance)) ? [sentence(hindrance)] : [];
  return {
    state: `${state}, and is to move. ${told.state}`,
    why: [...blocked, ...told.why],
    next: told.next,
    actions: [...told.actions, `follow it: 'godwit status'`],
  };
}

function leaving(scene: MachineScene, guest: VirtualMachineInstance, { state, hindrance }: RunningWords): Told {
  const causes = causesOf(guest).map(causeText);
  const why = causes.length > 0 ? causes.join('; ') : 'its node is being emptied';
  const isStuck = hindrance !== undefined;
  return {
    state: `${state}, and has to leave it${isStuck ? ', but cannot' : ''}.`,
    why: [...(isStuck ? [sentence(hindrance)] : []), sentence(why)],
    next: isStuck ? nextOfStuck(guest, scene.configuration) : 'A migration is made for it in a moment.',
    actions: [`let it stay: 'godwit evacuate-cancel ${at(scene)}'`, `shut it down: 'godwit stop ${at(scene)}'`],
  };
}

function nextOfStuck(guest: VirtualMachineInstance, configuration: KubeVirtConfiguration): string {
  switch (evictionOutcomeOf(guest, configuration)) {
    case 'External':
      return 'It stays until whoever manages it moves or ends it.';
    case 'Refuse':
      return 'It stays, and keeps its node from becoming empty, until it can be live-migrated or is stopped.';
    case 'Evict':
      return 'It is shut down with its pod.';
    case 'Migrate':
      return 'It is tried again by itself.';
    default:
      return 'It stays.';
  }
}

/** One that nobody wants anywhere else. */
function staying(scene: MachineScene, guest: VirtualMachineInstance, state: string): Told {
  const { machine, configuration, migrations } = scene;
  const paused = findCondition(guest.status?.conditions, 'Paused');
  const migratable = findCondition(guest.status?.conditions, 'LiveMigratable');
  const restart = findCondition(machine?.status?.conditions, 'RestartRequired');
  const strategy = evictionStrategyOf(guest, configuration);
  const isMigratable = migratable?.status === 'True';
  const [last] = migrations.filter((each) => each.status?.phase === 'Failed').toSorted(newestFirst);
  const failure = last && findCondition(last.status?.conditions, 'migrationFailed')?.message;
  return {
    state: `${state}${isMigratable ? ', and can be live-migrated' : ', and cannot be live-migrated'}.`,
    why: [
      ...(paused?.status === 'True' ? [sentence(paused.message ?? 'somebody paused it')] : []),
      ...(isMigratable ? [] : [sentence(migratable?.message ?? 'nobody has said yet whether it can')]),
      ...(restart?.status === 'True'
        ? [sentence(restart.message ?? 'a change takes effect when it is restarted')]
        : []),
      ...(failure ? [`Its last migration that failed: ${sentence(failure)}`] : []),
      `If its node is drained it ${EVICTION[evictionOutcomeOf(guest, configuration)]} (evictionStrategy ${strategy}).`,
    ],
    next: 'Nothing: it goes on.',
    actions: [
      ...(paused?.status === 'True' ? [`let it go on: 'godwit unpause ${at(scene)}'`] : []),
      ...(restart?.status === 'True' ? [`restart it: 'godwit restart ${at(scene)}'`] : []),
      ...(isMigratable ? [`move it: 'godwit migrate ${at(scene)} --watch'`] : []),
      `see it: 'godwit console ${at(scene)}'`,
    ],
  };
}

const EVICTION: { readonly [outcome in ReturnType<typeof evictionOutcomeOf>]: string } = {
  Migrate: 'moves',
  Evict: 'is shut down',
  Refuse: 'stays, and is in the way',
  External: 'stays until whoever manages it acts',
};

function newestFirst(a: VirtualMachineInstanceMigration, b: VirtualMachineInstanceMigration): number {
  return Date.parse(b.metadata.creationTimestamp ?? '') - Date.parse(a.metadata.creationTimestamp ?? '');
}

/** What is said of a guest that is over. */
function conditionTexts(guest: VirtualMachineInstance | undefined): string[] {
  const { reason = '' } = guest?.status ?? {};
  const told = findCondition(guest?.status?.conditions, 'Synchronized');
  const texts = [reason, told?.status === 'False' ? (told.message ?? '') : ''].filter((text) => text !== '');
  return texts.map(sentence);
}
