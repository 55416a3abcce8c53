import { isFeatureGateEnabled } from '../../api/kubevirt/feature-gates.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import { migratedGuestErrors, migrationConflicts, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { quantityToNumber } from '../../api/quantity.ts';
import { claimedVolumes, receiverObjection } from '../../control/migration/receiver.ts';
import { makeGuest } from '../../control/vm/make-guest.ts';
import { guestMemory, processorCount } from '../../control/vmi/launcher-resources.ts';
import { virtualMachines } from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { derivedSuffix } from '../../machinery/derived-identity.ts';
import { hasHeard } from '../../migration/halves/past-phases.ts';
import { arePaired, halvesOf, isHalfOf } from './halves.ts';
import {
  claimsAfter,
  isOfMove,
  leaving,
  type Obstacle,
  type PlannedObject,
  plannedObjects,
} from './planned-objects.ts';
import { MOVE_LABEL, type MoveMark, receivingMachine } from './receiving-machine.ts';
import type { SeenMove, SeenSource, TrustState } from './seen.ts';
import { hasCome, hasRight } from './verdict.ts';

/** From what is on both sides to what has to be made, and what is in the way. Pure. */

/** `taken back`: the guest was here before, and its machine was kept: it is told to wait. */
export type MachineState = PlannedObject['state'] | 'taken back';

export interface MovePlan {
  /** The same whenever the same move is asked for. */
  readonly id: string;
  readonly machine: { readonly object: VirtualMachine; readonly state: MachineState };
  /** What the machine needs, in the order in which it is made. */
  readonly objects: readonly PlannedObject[];
  readonly obstacles: readonly Obstacle[];
  /** What is good to know, and in nobody's way. */
  readonly notes: readonly string[];
  /** The guest that will wait, as far as that can be told. */
  readonly receiver: VirtualMachineInstance | undefined;
  /** Where the target is reached; empty where that is known only once its half is there. */
  readonly connectURL: string;
  /** What the halves know each other by, where a former run of the same move made one of them. */
  readonly key: string | undefined;
  /** `under way`: nothing is left to be made. `over`: the guest went there already. */
  readonly progress: 'new' | 'under way' | 'over';
}

/** The label of all that a move makes. */
export function moveId({ request, source, target }: Pick<SeenMove, 'request' | 'source' | 'target'>): string {
  const { to } = request;
  const from = `${source.clusterId ?? ''}/${source.machine.metadata.uid}`;
  return derivedSuffix(from, `move to ${clusterOf({ request, target })}/${to.namespace}/${to.name}`, 10);
}

/** What tells the target's cluster from all others, to whoever may not read its id, too. */
function clusterOf({ request, target }: Pick<SeenMove, 'request' | 'target'>): string {
  const { clusterId, namespace } = target;
  const uid = namespace === 'unknown' ? undefined : namespace?.metadata.uid;
  return clusterId ?? (uid === undefined ? (request.toServer ?? '') : `namespace ${uid}`);
}

/** What has to be done, and what keeps it from being done. */
export function planOf(seen: SeenMove): MovePlan {
  const { source, target, request } = seen;
  const id = moveId(seen);
  const isGone = source.machine.status?.rightToRun?.grantedAway === true;
  // The guest is there, and its machine here has yet to say so.
  const isLeaving = !isGone && isAway(source.guest?.status?.rightToRun);
  const isSend = (half: VirtualMachineInstanceMigration): boolean => isHalfOf(half, id, 'source', request.from);
  const isReceive = (half: VirtualMachineInstanceMigration): boolean => isHalfOf(half, id, 'target', request.to);
  const send = currentOf(source.migrations.filter(isSend), isLeaving);
  const receive = currentOf(target.migrations.filter(isReceive), isLeaving);
  const mark = { id, epoch: String(source.guest?.status?.rightToRun?.epoch ?? 0) };
  const machine = plannedMachine(seen, mark);
  const found = plannedObjects(seen, mark, machine.state);
  const { receiver, obstacle } = receiverOf(seen, machine, found.objects);
  const connectURL = request.connectURL ?? target.addresses[0] ?? '';
  return {
    id,
    machine,
    objects: found.objects,
    obstacles: [
      ...deniedObstacles(seen),
      ...sourceObstacles(seen, id, isGone),
      ...halfObstacles(seen, id),
      ...clusterObstacles(seen),
      ...targetObstacles(seen, machine),
      ...mappingObstacles(seen, machine),
      ...found.obstacles,
      ...(obstacle ? [obstacle] : []),
    ],
    notes: [...found.notes, ...unseenNotes(seen), ...networkNotes(machine)],
    receiver,
    connectURL,
    key: [send, receive].flatMap((half) => (half ? (pairKeyOf(half.spec) ?? []) : []))[0],
    progress: progressOf(seen, machine, { send, receive, isGone, received: target.migrations.filter(isReceive) }),
  };
}

/** How far a former run of the same move came. */
function progressOf(
  { source, target }: SeenMove,
  { state }: MovePlan['machine'],
  {
    send,
    receive,
    received,
    isGone,
  }: {
    readonly send: VirtualMachineInstanceMigration | undefined;
    readonly receive: VirtualMachineInstanceMigration | undefined;
    /** All that this move has at the target, also what is over. */
    readonly received: readonly VirtualMachineInstanceMigration[];
    readonly isGone: boolean;
  },
): MovePlan['progress'] {
  // One that sends, and that nobody there received or receives, is half a move at most: what is missing of it is made.
  const isPaired = send && (received.some((each) => arePaired(send, each)) || hasHeard(send));
  if (isPaired || send?.metadata.deletionTimestamp) return 'under way';
  // The half where the guest is going was made first, and may be the last to hear of its end, or of its being called off.
  if (!send && receive && (isGone || receive.metadata.deletionTimestamp)) return 'under way';
  if (!isGone || !target.machine || !hasCome(target)) return 'new';
  return state === 'made' || uuidOf(target.machine) === uuidOf(source.machine) ? 'over' : 'new';
}

/** The half of a move that is not over; one that has succeeded is not while the guest is still leaving. */
function currentOf(
  own: readonly VirtualMachineInstanceMigration[],
  isLeaving: boolean,
): VirtualMachineInstanceMigration | undefined {
  const unfinished = own.find((each) => !isFinalMigration(each));
  return unfinished ?? (isLeaving ? own.find(({ status }) => status?.phase === 'Succeeded') : undefined);
}

/** What has the name of a half of this move, and is something else. */
function halfObstacles({ source, target, request }: SeenMove, id: string): Obstacle[] {
  const { send, receive } = halvesOf(id, '');
  const named = [
    ...source.migrations.filter((each) => each.metadata.name === send && !isHalfOf(each, id, 'source', request.from)),
    ...target.migrations.filter((each) => each.metadata.name === receive && !isHalfOf(each, id, 'target', request.to)),
  ];
  return named.map(({ metadata: { namespace = '', name = '' } }) => ({
    what: `the migration ${name} in ${namespace} has the name of a half of this move, and is none`,
    fix: `kubectl delete vmim ${name} -n ${namespace}`,
  }));
}

function plannedMachine({ request, source, target }: SeenMove, mark: MoveMark): MovePlan['machine'] {
  const { machine: there } = target;
  const made = receivingMachine(source.machine, source.guest, { ...request.to, ...mark, networks: request.networks });
  if (!there) return { object: made, state: 'missing' };
  if (there.status?.rightToRun?.grantedAway === true) return { object: there, state: 'taken back' };
  return { object: there, state: isOfMove(there, mark.id) ? 'made' : 'there' };
}

function deniedObstacles({ source, target }: SeenMove): Obstacle[] {
  return [...new Set([...source.denied, ...target.denied])].map((denied) => ({
    what: `you may not ${denied}`,
    fix: 'ask for that right, or whoever has it',
  }));
}

function sourceObstacles(seen: SeenMove, id: string, isGone: boolean): Obstacle[] {
  const { source, request } = seen;
  const { namespace, name } = request.from;
  if (isGone)
    return [
      {
        what: `the guest of ${name} is not in ${namespace}: it went to another namespace or cluster`,
        fix: `move it from where it is; 'kubectl describe vm ${name} -n ${namespace}' says where that is`,
      },
    ];
  const { guest } = source;
  if (guest?.status?.phase !== 'Running')
    return [{ what: `${name} does not run`, fix: `godwit start ${name} -n ${namespace}` }];
  const strategy = effectiveRunStrategy(source.machine.spec);
  if (strategy === 'Halted' || strategy === 'WaitAsReceiver' || guest.metadata.deletionTimestamp)
    return [{ what: `${name} is about to stop, or waits itself`, fix: `godwit start ${name} -n ${namespace}` }];
  const wanted = { metadata: { namespace }, spec: { vmName: name, sendTo: { key: id, connectURL: '' } } };
  const others = source.migrations.filter(({ metadata }) => metadata.labels?.[MOVE_LABEL] !== id);
  return [
    ...migratedGuestErrors(wanted, guest).map(({ message }) => ({
      what: message,
      fix: `see 'kubectl describe vmi ${name} -n ${namespace}'`,
    })),
    ...migrationConflicts(wanted, others).map(({ message }) => ({
      what: message,
      fix: `wait until it is over, or 'godwit migrate-cancel ${name} -n ${namespace}'`,
    })),
  ];
}

const GATE = 'DecentralizedLiveMigration';

function clusterObstacles({ source, target, isSameCluster, request }: SeenMove): Obstacle[] {
  const there = request.toCluster ?? 'the target';
  return [
    ...gateObstacle(source.configuration, isSameCluster ? 'this cluster' : 'the cluster that the guest is in'),
    ...(isSameCluster ? [] : gateObstacle(target.configuration, there)),
    ...(isSameCluster ? [] : trustObstacle(source.trust, 'this cluster', there)),
    ...(isSameCluster ? [] : trustObstacle(target.trust, there, 'this cluster')),
  ];
}

function gateObstacle(configuration: KubeVirtConfiguration | undefined, where: string): Obstacle[] {
  if (!configuration || isFeatureGateEnabled(GATE, configuration)) return [];
  const gates = [...(configuration.developerConfiguration?.featureGates ?? []), GATE];
  const spec = { configuration: { developerConfiguration: { featureGates: gates } } };
  return [
    {
      what: `the feature gate ${GATE} is off in ${where}`,
      fix: `kubectl patch kubevirt kubevirt -n kubevirt --type merge -p '${JSON.stringify({ spec })}' there`,
    },
  ];
}

function trustObstacle(trust: TrustState, who: string, whom: string): Obstacle[] {
  if (trust === 'Trusted' || trust === undefined) return [];
  const how = {
    None: 'does not trust',
    Revoking: 'no longer trusts',
    Expired: 'last heard too long ago of',
    Broken: 'has an entry that makes no sense of',
  }[trust];
  return [{ what: `${who} ${how} ${whom}`, fix: `'godwit trust export' in ${whom}, 'godwit trust import' in ${who}` }];
}

/** What could not be looked at, for want of rights that a move does not need. */
function unseenNotes({ source, target, request, isSameCluster }: SeenMove): string[] {
  const there = request.toCluster ?? 'the target';
  const unseen = [
    ...(source.configuration ? [] : [`whether the feature gate ${GATE} is on where the guest is`]),
    ...(target.configuration || isSameCluster ? [] : [`whether the feature gate ${GATE} is on in ${there}`]),
    ...(source.trust === undefined ? [`whether this cluster trusts ${there}`] : []),
    ...(target.trust === undefined ? [`whether ${there} trusts this cluster`] : []),
    ...(target.storageClasses ? [] : ['which storage classes the target has']),
  ];
  return unseen.map((what) => `${what} was not seen: you may not look`);
}

/** Nodes do not tell which bridges they have: whether a guest can be on its networks is seen when its machine is prepared. */
function networkNotes({ object, state }: MovePlan['machine']): string[] {
  if (state === 'there' || state === 'taken back') return [];
  const names = (object.spec.template.spec?.networks ?? []).flatMap(({ multus }) => multus?.networkName ?? []);
  return [...new Set(names)].map(
    (name) => `whether nodes of the target have the network ${name} was not seen: nodes do not tell`,
  );
}

function targetObstacles(seen: SeenMove, { state }: MovePlan['machine']): Obstacle[] {
  const { target, request } = seen;
  const { namespace, name } = request.to;
  if (target.namespace === undefined)
    return [{ what: `there is no namespace ${namespace} at the target`, fix: `kubectl create namespace ${namespace}` }];
  if (target.namespace !== 'unknown' && target.namespace.metadata.deletionTimestamp)
    return [{ what: `the namespace ${namespace} is being deleted`, fix: 'choose another one' }];
  const { machine, guest } = target;
  const taken = { fix: 'choose another --name, or another namespace' };
  if (!machine)
    return guest ? [{ what: `a guest ${name} without a machine is in ${namespace} already`, ...taken }] : [];
  if (machine.metadata.deletionTimestamp) return [leaving(`the machine ${name}`, namespace)];
  if (state === 'taken back')
    return isSameGuest(seen, machine)
      ? []
      : [{ what: `the machine ${name} in ${namespace} is kept for another guest that left it`, ...taken }];
  if (effectiveRunStrategy(machine.spec) === 'WaitAsReceiver' && !hasRight(guest)) return [];
  return [{ what: `a machine ${name} is in ${namespace} already, and does not wait for a guest`, ...taken }];
}

/** Whether a machine that was kept is that of the guest that would come. */
function isSameGuest({ source }: SeenMove, machine: VirtualMachine): boolean {
  const uuid = uuidOf(machine);
  return uuid !== undefined && uuid === (source.guest?.spec.domain.firmware?.uuid || source.guest?.metadata.uid);
}

/** What the guest of a machine is known by to itself. */
function uuidOf(machine: VirtualMachine): string | undefined {
  const own = machine.spec.template.spec?.domain.firmware?.uuid;
  return (
    own ?? makeGuest(machine, { sizing: {}, configuration: {}, isReceiver: true }).guest?.spec.domain.firmware?.uuid
  );
}

function mappingObstacles({ request, source }: SeenMove, { state }: MovePlan['machine']): Obstacle[] {
  const { networks, storageClasses, to } = request;
  if ((state === 'there' || state === 'taken back') && networks.size + storageClasses.size > 0)
    return [
      {
        what: `the machine ${to.name} is in ${to.namespace} already, with networks and claims of its own`,
        fix: 'leave out --map-network and --map-storage-class, or choose another --name',
      },
    ];
  const names = (source.machine.spec.template.spec?.networks ?? []).flatMap(({ multus }) => multus?.networkName ?? []);
  return [...request.networks.keys()]
    .filter((from) => !names.includes(from))
    .map((from) => ({
      what: `the machine is on no network ${from}`,
      fix: `leave out --map-network ${from}=…${names.length > 0 ? `; it is on ${names.join(', ')}` : ''}`,
    }));
}

/** The guest that will wait, and why it could not become the one that comes. */
function receiverOf(
  seen: SeenMove,
  machine: MovePlan['machine'],
  objects: readonly PlannedObject[],
): { readonly receiver?: VirtualMachineInstance; readonly obstacle?: Obstacle } {
  const { source, target, request } = seen;
  const { guest } = source;
  const restart = `restart ${request.from.name} if it has changed since it was started, or see that the target has the same`;
  const made = madeReceiver(seen, machine.object);
  if (!made.guest) return { obstacle: { what: `no guest could be made there: ${made.why}`, fix: restart } };
  if (!guest) return { receiver: made.guest };
  const claims = claimsAfter(seen, objects);
  const known = new Set(claims.keys());
  const expected = expectedOf(guest, source);
  const objection = receiverObjection(
    made.guest,
    expected,
    claimedVolumes(made.guest, (name) => claims.get(name)),
  );
  const missing = machine.state === 'missing' || machine.state === 'made' ? undefined : missingClaim(made.guest, known);
  if (missing !== undefined)
    return {
      receiver: made.guest,
      obstacle: {
        what: `the machine that waits needs the claim ${missing}, which is not there`,
        fix: 'create it, blank',
      },
    };
  if (objection === undefined) return { receiver: made.guest };
  const fix = target.machine ? `change the machine ${request.to.name} that waits in ${request.to.namespace}` : restart;
  return {
    receiver: made.guest,
    obstacle: { what: `the guest would not fit into the machine there: ${objection}`, fix },
  };
}

function missingClaim({ spec }: VirtualMachineInstance, claims: ReadonlySet<string>): string | undefined {
  return (spec.volumes ?? [])
    .flatMap(({ persistentVolumeClaim, dataVolume }) => persistentVolumeClaim?.claimName ?? dataVolume?.name ?? [])
    .find((name) => !claims.has(name));
}

function expectedOf(guest: VirtualMachineInstance, { claims }: SeenSource): MigrationState['sourceState'] {
  const memory = guestMemory(guest.spec);
  const state = {
    ...(memory ? { memoryBytes: quantityToNumber(memory) } : {}),
    vcpus: processorCount(guest.spec),
    volumes: claimedVolumes(guest, (name) => claims.get(name)),
  };
  return state as unknown as MigrationState['sourceState'];
}

function madeReceiver(
  { source, target }: SeenMove,
  machine: VirtualMachine,
): { readonly guest?: VirtualMachineInstance; readonly why?: string } {
  if (target.guest && target.machine) return { guest: target.guest };
  const instancetype = (target.instancetype?.object ?? source.instancetype?.object)?.spec;
  const preference = (target.preference?.object ?? source.preference?.object)?.spec;
  const sizing = { ...(instancetype ? { instancetype } : {}), ...(preference ? { preference } : {}) };
  const { guest, errors } = makeGuest(machine, {
    sizing,
    configuration: target.configuration ?? source.configuration ?? {},
    isReceiver: true,
  });
  return guest ? { guest } : { why: errors.map(({ field, message }) => `${field}: ${message}`).join('; ') };
}

/** The machine as something that is planned like the rest. */
export function plannedReceiver({ machine }: MovePlan): PlannedObject {
  const state = machine.state === 'taken back' ? 'there' : machine.state;
  return {
    resource: virtualMachines as unknown as Resource,
    object: machine.object,
    state,
    about: 'waits for the guest',
  };
}
