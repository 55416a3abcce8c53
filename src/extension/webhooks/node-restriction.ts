import { isAcross, sidesOf } from '../../api/kubevirt/migration-sides.ts';
import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { rightTransition } from '../../api/kubevirt/right-to-run-transition.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { nodeOfUser, NODES_GROUP } from '../../machinery/node-user.ts';
import { isHolderNode, isSuccessorNode, recordObjection } from '../../migration/right-to-run/objection.ts';
import type { WebhookContext } from './context.ts';
import { migrationObjection } from './migration-halves.ts';
import { type AdmissionRequest, ALLOWED, type Verdict, type Webhook } from './review.ts';

/**
 * What the agents of nodes may write. A role says that they may write the status of guests; here is said of which ones,
 * and what: a node that was broken into must not be able to start guests that are not its own, to end those of other
 * nodes, or to have them started twice. The record of the right to run is the measure: who holds the right, or is next.
 */

type Status = VirtualMachineInstanceStatus;

/** The fields of a guest's status that an agent writes. */
const AGENT_FIELDS: ReadonlySet<string> = new Set<keyof Status>([
  'phase',
  'reason',
  'phaseTransitionTimestamps',
  'conditions',
  'rightToRun',
  'nodeName',
  'interfaces',
  'volumeStatus',
  'guestOSInfo',
  'machine',
  'fsFreezeStatus',
  'kernelBootStatus',
  'runtimeUser',
  'selinuxContext',
  'VSOCKCID',
  'migrationState',
  'currentCPUTopology',
  'memory',
]);

/** Conditions that an agent writes. By the others, which are the controllers', it is decided what happens to a guest. */
const AGENT_CONDITIONS: ReadonlySet<string> = new Set([
  'Paused',
  // Why a guest failed: words only, which the controllers take from its pod otherwise.
  'Synchronized',
  'AgentConnected',
  'AgentVersionNotSupported',
  'AccessCredentialsSynchronized',
]);

/** Answers for whoever is a node; all others are none of its business. */
export function restrictNodes({ unheard }: Pick<WebhookContext, 'unheard'>): Webhook {
  return (request) => {
    const { username = '', groups = [] } = request.userInfo;
    if (!groups.includes(NODES_GROUP)) return ALLOWED;
    const node = nodeOfUser({ username, groups });
    if (!node) return denied(`could not determine node from user ${JSON.stringify(username)}`);
    const objection = objectionTo(node, request, unheard().includes(node));
    return objection === undefined ? ALLOWED : denied(`node ${JSON.stringify(node)} ${objection}`);
  };
}

function denied(message: string): Verdict {
  return { allowed: false, status: { code: 403, reason: 'Forbidden', message } };
}

function objectionTo(node: string, request: AdmissionRequest, isUnheard: boolean): string | undefined {
  const { operation, resource, subResource, object, oldObject } = request;
  const isStatusOfGuest = resource.resource === 'virtualmachineinstances' && subResource === 'status';
  if (operation !== 'UPDATE' || !isStatusOfGuest || !object || !oldObject)
    return 'may write nothing but the status of guests';
  const [old, next] = [oldObject as VirtualMachineInstance, object as VirtualMachineInstance];
  if (!deepEqual(old.spec, next.spec)) return 'may write nothing but the status of guests';
  return guestObjection(node, old, next.status ?? {}, isUnheard);
}

/**
 * What is wrong with a node's change of a guest's status; undefined for nothing. Data that was restored may know nothing of a
 * pod that the journal of a node knows: while that is to be heard, it may set records right, by the steps that are its own.
 */
function guestObjection(
  node: string,
  guest: VirtualMachineInstance,
  next: Status,
  isUnheard: boolean,
): string | undefined {
  const old = guest.status ?? {};
  const fields = changedFields(old, next);
  const isLastWord = isSide(node, guest) && fields.every((each) => each === 'migrationState');
  const isSetRight = isUnheard && fields.every((each) => each === 'rightToRun');
  if (!isConcerned(node, old) && !isLastWord && !isSetRight) return 'has nothing to do with this guest';
  const field = fields.find((each) => !AGENT_FIELDS.has(each));
  if (field !== undefined) return `may not write status.${field}`;
  return (
    rightObjection(node, guest, next.rightToRun) ??
    placeObjection(node, old, next) ??
    migrationObjection(node, guest, next) ??
    conditionObjection(node, old, next) ??
    phaseObjection(node, old, next)
  );
}

/** Whether the guest runs on the node, was given to it to be started, or is about to come to it. */
function isConcerned(node: string, { rightToRun, nodeName, activePods = {} }: Status): boolean {
  if (isHolderNode(node, rightToRun) || isSuccessorNode(node, rightToRun)) return true;
  return nodeName === node || Object.values(activePods).includes(node);
}

/** Whether the guest's last move was from or to the node: of that it may have something to say when its pod is over. */
function isSide(node: string, guest: VirtualMachineInstance): boolean {
  const { sourceNode, targetNode } = guest.status?.migrationState ?? {};
  const { isSource, isTarget } = sidesOf(guest);
  return (isSource && sourceNode === node) || (isTarget && targetNode === node);
}

function changedFields(old: Status, next: Status): string[] {
  const [before, after] = [new Map(Object.entries(old)), new Map(Object.entries(next))];
  const all = new Set([...before.keys(), ...after.keys()]);
  return [...all].filter((field) => !deepEqual(before.get(field), after.get(field)));
}

/** What is wrong with a node's change of the record; what a guest is started by is more than the record. */
function rightObjection(node: string, guest: VirtualMachineInstance, next: RightToRun | undefined): string | undefined {
  const old = guest.status?.rightToRun;
  if (deepEqual(old, next)) return undefined;
  const objection = recordObjection(node, old, next, { isAcross: isAcross(guest) });
  if (objection !== undefined) return objection;
  return next && rightTransition(old, next) === 'start' ? startObjection(node, guest, next) : undefined;
}

/** A guest is where it may be executed: who holds the right may say so, and nobody else. */
function placeObjection(node: string, old: Status, next: Status): string | undefined {
  if (old.nodeName === next.nodeName) return undefined;
  return next.nodeName === node && isHolderNode(node, next.rightToRun)
    ? undefined
    : 'may say where a guest is only of itself, and with the right to run it';
}

function startObjection(node: string, guest: VirtualMachineInstance, next: RightToRun | undefined): string | undefined {
  const { metadata, status = {} } = guest;
  const pods = new Map(Object.entries(status.activePods ?? {}));
  if (pods.get(next?.holder?.podUID ?? '') !== node) return 'may start a guest only in a launcher pod that it runs';
  if (status.phase === 'Succeeded' || status.phase === 'Failed') return 'may not start a guest that has ended';
  if (status.phase === 'WaitingForSync' && !isReceived(node, guest, next))
    return 'may not start a guest that waits to be received';
  if (status.phase !== 'Scheduled') return undefined;
  if (status.nodeName !== node)
    return `may not start a guest that was given to node ${JSON.stringify(status.nodeName ?? '')}`;
  return metadata.deletionTimestamp === undefined ? undefined : 'may not start a guest that is being deleted';
}

/** Whether a record begins since the guest has come from elsewhere, to whom it was to come. */
function isReceived(node: string, guest: VirtualMachineInstance, next: RightToRun | undefined): boolean {
  const { targetNode, targetRunner, sourceState } = guest.status?.migrationState ?? {};
  if (!isAcross(guest) || !sidesOf(guest).isTarget || targetNode !== node) return false;
  return next?.holder?.podUID === targetRunner?.podUID && (next?.epoch ?? 0) > (sourceState?.epoch ?? Number.NaN);
}

/** The controllers' conditions stay as they are; the others are those of who executes the guest. */
function conditionObjection(node: string, old: Status, next: Status): string | undefined {
  if (deepEqual(old.conditions, next.conditions)) return undefined;
  const ofControllers = ({ conditions = [] }: Status): object[] =>
    conditions.filter(({ type }) => !AGENT_CONDITIONS.has(type)).sort((a, b) => (a.type < b.type ? -1 : 1));
  if (!deepEqual(ofControllers(old), ofControllers(next)))
    return `may write no conditions but ${[...AGENT_CONDITIONS].join(', ')}`;
  return speaksFor(node, old, next) ? undefined : 'does not execute this guest, and may not say how it is';
}

function phaseObjection(node: string, old: Status, next: Status): string | undefined {
  const isSame = old.phase === next.phase && deepEqual(old.phaseTransitionTimestamps, next.phaseTransitionTimestamps);
  if (isSame) return undefined;
  if (!speaksFor(node, old, next)) return 'does not execute this guest, and may not say how it is';
  if (old.phase === 'Succeeded' || old.phase === 'Failed') return 'may not bring back a guest that has ended';
  const phase = next.phase ?? '';
  const isRunning = phase === 'Running' && isHolderNode(node, next.rightToRun);
  if (isRunning || phase === 'Succeeded' || phase === 'Failed') return undefined;
  return `may not say that the guest is ${JSON.stringify(phase)}`;
}

/** Whether it is for this node to say how the guest is: it holds the right, or was the last to. */
function speaksFor(node: string, old: Status, next: Status): boolean {
  const record = next.rightToRun?.holder ? next.rightToRun : old.rightToRun;
  return record?.holder ? isHolderNode(node, record) : old.nodeName === node;
}
