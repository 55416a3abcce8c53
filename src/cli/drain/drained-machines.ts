import { causesOf, isMarked } from '../../api/kubevirt/evacuation.ts';
import { evictionOutcomeOf, type EvictionStrategy, evictionStrategyOf } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { progressSummary } from '../../api/kubevirt/migration-progress.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { unreachable } from '../../api/unreachable.ts';
import { hindranceOf } from '../../control/evacuation/hindrances.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { sourceNodeOf } from '../../migration/phase/facts.ts';

/** How each virtual machine of a node that is emptied is, in words for whoever empties it; pure. */

/** Left: it is elsewhere. Gone: it runs nowhere any more. All others are still on the node. */
export type MachineState = 'Left' | 'Gone' | 'Moving' | 'Preparing' | 'Waiting' | 'Stopping' | 'Blocked';

export interface MachineRow {
  /** Namespace and name. */
  readonly machine: string;
  readonly strategy: EvictionStrategy;
  readonly state: MachineState;
  /** How far it is, and how long it will take; empty while there is nothing to say. */
  readonly progress: string;
  /** How far it is; absent while it is not being copied. */
  readonly percent?: number;
  readonly detail: string;
  /** What somebody has to do about it; undefined where it goes on by itself. */
  readonly remedy?: string;
}

/** A guest that was on the node when it was first looked at, or came later. */
export interface SeenGuest {
  /** As it was on the node. */
  readonly last: VirtualMachineInstance;
  /** As it is; undefined where it is gone. */
  readonly now: VirtualMachineInstance | undefined;
  readonly migrations: readonly VirtualMachineInstanceMigration[];
  /** Its launcher pod on the node. */
  readonly pod: Pod | undefined;
  /** What was last answered to whoever wanted to evict the pod. */
  readonly refusal: string | undefined;
}

export interface NodeScene {
  readonly node: string;
  readonly configuration: KubeVirtConfiguration;
}

/** How a guest is. */
export function rowOf(seen: SeenGuest, scene: NodeScene): MachineRow {
  const { last, now } = seen;
  const { namespace = '', name = '' } = last.metadata;
  const strategy = evictionStrategyOf(now ?? last, scene.configuration);
  return { machine: `${namespace}/${name}`, strategy, progress: '', ...whereabouts(seen, scene) };
}

type Told = Pick<MachineRow, 'state' | 'detail'> & Partial<Pick<MachineRow, 'progress' | 'percent' | 'remedy'>>;

function whereabouts(seen: SeenGuest, scene: NodeScene): Told {
  const { last, now } = seen;
  if (!now || now.metadata.uid !== last.metadata.uid) return { state: 'Gone', detail: 'it was stopped' };
  if (isOver(now)) return { state: 'Gone', detail: 'it has ended' };
  const node = sourceNodeOf(now);
  if (node !== scene.node) return { state: 'Left', detail: node ? `it runs on ${node}` : 'it runs nowhere' };
  if (now.metadata.deletionTimestamp !== undefined) return { state: 'Stopping', detail: 'somebody deleted it' };
  return hindered(now, seen, scene) ?? underWay(seen) ?? idle(now, seen, scene);
}

function hindered(guest: VirtualMachineInstance, { migrations }: SeenGuest, scene: NodeScene): Told | undefined {
  const hindrance = hindranceOf(guest, migrations, scene.configuration);
  if (!hindrance) return undefined;
  const remedy = remedyFor(guest, scene.configuration);
  return { state: 'Blocked', detail: hindrance.message, ...(remedy === undefined ? {} : { remedy }) };
}

/** What helps a guest that nothing but somebody's help moves. Whoever manages an External one may be about to. */
function remedyFor(guest: VirtualMachineInstance, configuration: KubeVirtConfiguration): string | undefined {
  if (evictionOutcomeOf(guest, configuration) !== 'Refuse') return undefined;
  const { namespace, name } = guest.metadata;
  return `make it migratable, or stop it ('godwit stop ${name} -n ${namespace}'), or let it stop with its pod (evictionStrategy: None)`;
}

/** What its migration does, if it has one. */
function underWay({ migrations }: SeenGuest): Told | undefined {
  const migration = migrations.find((each) => !isFinalMigration(each));
  if (!migration) return undefined;
  const { phase = '', progress, migrationState, causes = [] } = migration.status ?? {};
  const target = migrationState?.targetNode ? ` to ${migrationState.targetNode}` : '';
  const whose = causes.length === 0 || causes.some(({ cause }) => cause !== 'User') ? '' : ' (a user asked for it)';
  switch (phase) {
    case '':
    case 'Pending':
    case 'WaitingForSync':
    case 'Synchronizing':
      return { state: 'Waiting', detail: `its migration waits for its turn${whose}` };
    case 'Scheduling':
      return { state: 'Preparing', detail: 'a node is being found for it' };
    case 'Scheduled':
    case 'PreparingTarget':
    case 'TargetReady':
      return { state: 'Preparing', detail: `it is about to move${target}` };
    case 'Running': {
      const mode = migrationState?.mode && migrationState.mode !== 'PreCopy' ? ` (${migrationState.mode})` : '';
      return {
        state: 'Moving',
        detail: `it moves${target}${mode}`,
        progress: progress ? (progress.summary ?? progressSummary(progress)) : '',
        ...(progress ? { percent: progress.percent } : {}),
      };
    }
    case 'Succeeded':
    case 'Failed':
      return undefined;
    default:
      return unreachable(phase);
  }
}

/** A guest that nothing is done about at this moment. */
function idle(guest: VirtualMachineInstance, { pod, refusal }: SeenGuest, scene: NodeScene): Told {
  const isTerminating = pod?.metadata.deletionTimestamp !== undefined;
  if (evictionOutcomeOf(guest, scene.configuration) === 'Evict')
    return isTerminating
      ? { state: 'Stopping', detail: 'it is being shut down' }
      : { state: 'Waiting', detail: refusal ?? 'it is to be shut down' };
  if (!isMarked(guest)) return { state: 'Waiting', detail: unmarkedDetail(refusal) };
  const deadline = causesOf(guest).find((cause) => cause.deadline !== undefined)?.deadline;
  return {
    state: 'Waiting',
    detail: deadline ? `it has to be gone by ${deadline}, and is about to move` : 'it is about to move',
  };
}

const BUDGET = /disruption budget/;

/** What keeps a guest that nobody has marked yet: its budget does, and the webhook that would mark it was not there. */
function unmarkedDetail(refusal: string | undefined): string {
  if (refusal === undefined) return 'nobody has asked it to leave yet';
  if (BUDGET.test(refusal))
    return 'its disruption budget keeps it, and nobody moves it: is the eviction webhook there?';
  return refusal;
}

function isOver({ status }: VirtualMachineInstance): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** Whether it is still on the node. */
export function isThere({ state }: MachineRow): boolean {
  return state !== 'Left' && state !== 'Gone';
}

/** Whether a guest has yet to be told that it has to leave, and so its pod has to be evicted. */
export function isUnasked({ now, pod }: Pick<SeenGuest, 'now' | 'pod'>): boolean {
  return pod?.metadata.deletionTimestamp === undefined && !(now && isMarked(now));
}

/** What would become of a guest if its node were emptied now, and why. */
export function forecastOf(
  guest: VirtualMachineInstance,
  configuration: KubeVirtConfiguration,
  hasNoRoom: string | undefined,
): { readonly verdict: 'moves' | 'stops' | 'blocks'; readonly why: string } {
  const strategy = evictionStrategyOf(guest, configuration);
  const outcome = evictionOutcomeOf(guest, configuration);
  switch (outcome) {
    case 'Migrate':
      return hasNoRoom === undefined
        ? { verdict: 'moves', why: `${strategy}, and it can be live-migrated` }
        : { verdict: 'blocks', why: `no node takes it now: ${hasNoRoom}` };
    case 'Evict':
      return {
        verdict: 'stops',
        why: strategy === 'None' ? 'its eviction strategy is None' : `${strategy}, and it cannot be live-migrated`,
      };
    case 'Refuse':
    case 'External':
      return { verdict: 'blocks', why: hindranceOf(guest, [], configuration)?.message ?? strategy };
    default:
      return unreachable(outcome);
  }
}
