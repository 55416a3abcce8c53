import { isMarked } from '../../api/kubevirt/evacuation.ts';
import { evictionOutcomeOf, type EvictionOutcome } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { hindranceOf } from '../../control/evacuation/hindrances.ts';
import { findCondition } from '../../kube/conditions.ts';
import { keyOf } from '../../kube/resource.ts';
import { hasDrainTaint } from '../../migration/eviction/drain-taint.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { isOutOfService } from '../../migration/right-to-run/out-of-service.ts';
import type { Queue } from '../queue/queue.ts';
import { type Answer, closed, sentence } from './answer.ts';

/** What is with a node, in words; pure. */

export interface NodeScene {
  readonly node: Node;
  /** Guests that are on it. */
  readonly guests: readonly VirtualMachineInstance[];
  /** By the guest's namespace and name. */
  readonly migrationsOf: ReadonlyMap<string, readonly VirtualMachineInstanceMigration[]>;
  readonly queue: Queue;
  readonly configuration: KubeVirtConfiguration;
  readonly nowMs: number;
}

type Told = Omit<Answer, 'subject'>;
type Conditions = Parameters<typeof findCondition>[0];

/** Answers why a node is as it is. */
export function whyNode(scene: NodeScene): Answer {
  return { subject: `node ${scene.node.metadata.name ?? ''}`, ...toldOf(scene) };
}

function toldOf(scene: NodeScene): Told {
  const { node, configuration } = scene;
  const ready = findCondition((node.status?.conditions ?? []) as Conditions, 'Ready');
  if (isOutOfService(node)) return givenUp(scene);
  if (ready?.status !== 'True') return unheard(scene, ready?.message);
  const isDraining = node.spec?.unschedulable === true || hasDrainTaint(node, configuration);
  return isDraining ? draining(scene) : serving(scene);
}

function nameOf({ node }: NodeScene): string {
  return node.metadata.name ?? '';
}

function counted(count: number): string {
  return count === 1 ? '1 virtual machine' : `${count} virtual machines`;
}

function givenUp(scene: NodeScene): Told {
  return {
    state: 'It was given up.',
    why: ['Somebody says that nothing of it runs any more (taint out-of-service).'],
    next: `The right to run of ${counted(scene.guests.length)} on it is taken back, and they start elsewhere if they should run.`,
    actions: [
      `once it is back, and nothing of them runs there: 'kubectl taint node ${nameOf(scene)} node.kubernetes.io/out-of-service-'`,
    ],
  };
}

function unheard(scene: NodeScene, message: string | undefined): Told {
  const name = nameOf(scene);
  const count = scene.guests.length;
  return {
    state: `It is not ready${count === 0 ? '' : `, and nobody knows whether ${counted(count)} on it still run${count === 1 ? 's' : ''}`}.`,
    why: [sentence(message ?? 'its agent has never said that it is')],
    next:
      count === 0
        ? 'It takes no pods until it is ready.'
        : 'They are started nowhere else until it is back, or was given up: they might run twice.',
    actions: [
      `see that its agent runs, and reaches the API server ('godwit agent --name ${name} …')`,
      ...(count === 0
        ? []
        : [
            `only once the machine is off for good: 'kubectl taint node ${name} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute'`,
          ]),
    ],
  };
}

function draining(scene: NodeScene): Told {
  const { node, guests, migrationsOf, configuration, nowMs } = scene;
  const name = nameOf(scene);
  const isCordoned = node.spec?.unschedulable === true;
  const hindrances = guests.flatMap((guest) => {
    const found = hindranceOf(guest, migrationsOf.get(keyOf(guest)) ?? [], configuration, nowMs);
    return found ? [found] : [];
  });
  const marked = guests.filter(isMarked).length;
  const leaving = movingFrom(scene);
  const uncordon = isCordoned ? [`let it take pods again: 'godwit uncordon ${name}'`] : [];
  const how = isCordoned ? 'It is cordoned' : 'It has the drain taint';
  if (guests.length === 0)
    return {
      state: `${how}, and has no virtual machine any more.`,
      why: ['Somebody empties it, or is about to.'],
      next: 'Nothing: it can be switched off.',
      actions: uncordon,
    };
  return {
    state: `${how}: ${counted(guests.length)} ${guests.length === 1 ? 'is' : 'are'} on it, ${marked} of which ${marked === 1 ? 'has' : 'have'} to leave, and ${leaving} ${leaving === 1 ? 'is' : 'are'} on the way.`,
    why: [
      ...hindrances.map(({ guest, message }) => closed(`${guest} ${message}`)),
      ...(hindrances.length === 0 && marked === 0 ? ['Nobody has asked them to leave yet.'] : []),
      ...waitingFrom(scene),
    ],
    next: nextOf(hindrances.length, marked),
    actions: [
      ...(marked < guests.length
        ? [`ask all of them to leave, and follow it: 'godwit drain ${name}'`]
        : [`follow it: 'godwit drain ${name}'`]),
      ...uncordon,
      ...(marked > 0 ? [`let them stay: 'godwit evacuate-cancel node ${name}'`] : []),
    ],
  };
}

function nextOf(hindrances: number, marked: number): string {
  if (hindrances > 0)
    return `It does not become empty until something is done about ${hindrances === 1 ? 'that' : 'those'}.`;
  return marked > 0 ? 'They move as slots become free, and then it is empty.' : 'Nothing, until it is drained.';
}

const OUTCOMES: readonly (readonly [EvictionOutcome, string])[] = [
  ['Migrate', 'would move'],
  ['Evict', 'would be shut down'],
  ['Refuse', 'would stay, and be in the way'],
  ['External', 'would stay until whoever manages them acts'],
];

/** A node that all is well with. */
function serving(scene: NodeScene): Told {
  const { node, guests, configuration } = scene;
  const name = nameOf(scene);
  const pressures = (node.status?.conditions ?? []).filter(
    ({ type, status }) => type.endsWith('Pressure') && status === 'True',
  );
  const taints = (node.spec?.taints ?? []).map(
    ({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`,
  );
  const outcomes = guests.map((guest) => evictionOutcomeOf(guest, configuration));
  const drained = OUTCOMES.flatMap(([outcome, text]) => {
    const count = outcomes.filter((each) => each === outcome).length;
    return count > 0 ? [`${count} ${text}`] : [];
  });
  return {
    state: `It is ready, and has ${counted(guests.length)}.`,
    why: [
      ...pressures.map(({ type, message }) => sentence(`${type}: ${message ?? ''}`)),
      ...(taints.length > 0 ? [`It has taints: ${taints.join(', ')}.`] : []),
      ...(drained.length > 0 ? [`If it were drained, ${drained.join(', ')}.`] : []),
      ...waitingFrom(scene),
    ],
    next: 'It goes on, and takes what fits on it.',
    actions: [`see what a drain would do: 'godwit drain ${name} --dry-run'`, `empty it: 'godwit drain ${name}'`],
  };
}

function movingFrom({ queue, node }: NodeScene): number {
  return queue.moving.filter(({ sourceNode }) => sourceNode === node.metadata.name).length;
}

function waitingFrom({ queue, guests }: NodeScene): string[] {
  const here = new Set(guests.map(keyOf));
  const waiting = queue.waiting.filter(({ machine }) => here.has(machine)).length;
  return waiting === 0
    ? []
    : [`${waiting === 1 ? 'One of them waits' : `${waiting} of them wait`} to move: 'godwit queue' says for what.`];
}
