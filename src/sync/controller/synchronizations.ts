import { agentKeysOf } from '../../api/kubevirt/agent-keys.ts';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import { unlessAborted } from '../../kube/abort.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result, soonest } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { kubeVirts, virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf, type Resource } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { hasHeard, wasHandedOff } from '../../migration/halves/past-phases.ts';
import { syncTimeoutMs } from '../../migration/phase/deadlines.ts';
import type {
  Channel,
  ChannelListener,
  Dialer,
  OfferedHalf,
  ReceivedHalf,
  Refusal,
  Role,
  SyncError,
} from '../channel.ts';
import { hostAndPort } from '../wire/address.ts';
import type { EarlyLimits } from './early-halves.ts';
import {
  boundUidOf,
  isOtherEnded,
  mayOtherRely,
  ownNodeOf,
  ownStateOf,
  type PairStatus,
  projectHalf,
  stopped,
} from './halves.ts';
import { Hearing } from './hearing.ts';
import { type Link, Links } from './links.ts';
import { Loopback } from './loopback.ts';
import { keep, release, tellGuest, tellMigration } from './own-objects.ts';
import { FAILURE_CONDITION, keyInUse, type Problem, silence, withProblem } from './problem.ts';
import type { RevocableTrust } from './revocable-trust.ts';
import {
  guestKeyOf,
  hasKey,
  isKept,
  isOneGuest,
  meant,
  otherRole,
  pairGuestsOf,
  peerOf,
  type Side,
  sideId,
  sideIdsOf,
  sideOf,
} from './side.ts';
import { spokesmanOf } from './spokesman.ts';
import { taken, UNHEARD } from './taken.ts';
import { type Talk, Talks } from './talks.ts';

type Migration = VirtualMachineInstanceMigration;
type Guest = VirtualMachineInstance;

export interface SynchronizationsOptions {
  readonly env: Env;
  readonly client: Client;
  readonly informers: SharedInformers;
  readonly metrics?: KubeMetrics;
  /** Our own cluster, as others know it. */
  readonly clusterId: string;
  /** Where others reach us, as host and port, the first one before all others; empty while nobody can. */
  readonly addresses: () => readonly string[];
  /** The ways to other clusters, which tell the listener what comes. */
  readonly connect: (listener: ChannelListener) => Dialer;
  readonly trust: RevocableTrust;
  /** Resolves when it is known whom we trust, and where we are reached. */
  readonly ready?: Promise<void>;
  readonly earlyLimits?: EarlyLimits;
}

const WORKERS = 8;
/** When what we read and what we hear disagree, one of them is late: this is how soon we look again. */
const RECHECK_MS = 250;
/** What is over sooner is not worth the trouble of telling. */
const PROBLEM_GRACE_MS = 3000;
/** Says in the queue that this is no migration but a cluster; names of namespaces have none. */
const PEER_PREFIX = 'peer:';

const nodes: Resource = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

/**
 * Tells the other side of each pair what it needs to know of ours, and writes into our guest what the other side tells, so
 * that everybody else finds there what they find of any migration. Nothing important is in memory alone: what is said
 * follows from our objects, and what was heard is told to be known only once it is in them.
 *
 *   received ── Hearing (bound to whom? newer?) ── queue ── reconcile ── own half ──▶ offered
 *                                                               └── other half ──▶ our guest's status, one patch
 */
export class Synchronizations implements Service, ChannelListener {
  readonly name = 'synchronizations';
  readonly #options: SynchronizationsOptions;
  readonly #env: Env;
  readonly #client: Client;
  readonly #migrations: Informer<Migration>;
  readonly #guests: Informer<Guest>;
  readonly #nodes: Informer<KubeObject>;
  readonly #kubeVirts: Informer<KubeVirt>;
  readonly #hearing: Hearing;
  readonly #links: Links;
  readonly #controller: Controller;
  readonly #talks: Talks;

  constructor(options: SynchronizationsOptions) {
    const { env, client, informers, metrics, clusterId } = options;
    this.#options = options;
    this.#env = env;
    this.#client = client;
    this.#migrations = informers.of(virtualMachineInstanceMigrations, {
      side: sideIdsOf,
      pairGuest: pairGuestsOf,
      peer: (migration) => [peerOf(migration) ?? ''].filter((peer) => peer !== ''),
      connectURL: (migration) => [sideOf(migration)?.connectURL ?? ''].filter((url) => url !== ''),
    });
    this.#guests = informers.of(virtualMachineInstances);
    this.#nodes = informers.of(nodes);
    this.#kubeVirts = informers.of(kubeVirts);
    this.#hearing = new Hearing({
      clock: env.clock,
      patienceMs: () => syncTimeoutMs([...this.#kubeVirts.list()][0]?.spec.configuration ?? {}),
      limits: options.earlyLimits,
      meant: (role, key) => this.#meant(role, key),
      peerOf: (migration) => peerOf(migration) ?? this.#talks.peerOf(migration),
      isRevoked: (peer) => this.#isRevoked(peer),
      onNews: (migration) => this.#controller.enqueue(keyOf(migration)),
    });
    this.#controller = new Controller({
      name: 'synchronization-controller',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#links = new Links({
      clock: env.clock,
      clusterId,
      dialer: options.connect(this),
      loopback: new Loopback(clusterId, this, env.log),
      isOwnAddress: (connectURL) => this.#isOwnAddress(connectURL),
    });
    this.#talks = new Talks({
      env,
      onSilence: (migration, { connectURL }) => {
        if (connectURL !== undefined) this.#links.unwant(migration, connectURL);
      },
    });
    this.#listen();
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      if (this.#options.ready) await unlessAborted(this.#options.ready, signal);
      await this.#controller.run(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#talks.stop();
    }
  }

  received(peer: string, update: ReceivedHalf): Promise<void> {
    return this.#hearing.received(peer, update);
  }

  acknowledged(_peer: string, update: OfferedHalf): void {
    for (const migration of this.#talks.answered(update)) this.#controller.enqueue(migration);
  }

  refused(_peer: string, update: OfferedHalf, refusal: Refusal): void {
    for (const migration of this.#talks.answered(update, refusal)) this.#controller.enqueue(migration);
  }

  /** Trust in a cluster was revoked. */
  revoked(peer: string): void {
    this.#enqueueAll('peer', peer);
    this.#controller.enqueue(`${PEER_PREFIX}${peer}`);
  }

  opened(channel: Channel): void {
    this.#links.opened(channel);
    this.#enqueueAll('peer', channel.peer);
  }

  closed(peer: string, error: SyncError): void {
    this.#links.closed(peer, error);
    this.#enqueueAll('peer', peer);
  }

  reached(connectURL: string, channel: Channel): void {
    this.#links.reached(connectURL, channel);
    this.#enqueueAll('connectURL', connectURL);
  }

  unreachable(connectURL: string, error: SyncError): void {
    this.#links.unreachable(connectURL, error);
    this.#enqueueAll('connectURL', connectURL);
  }

  #listen(): void {
    this.#migrations.onChange(({ object }) => {
      this.#controller.enqueue(keyOf(object));
      const side = sideOf(object);
      const peer = peerOf(object);
      if (peer !== undefined && this.#isRevoked(peer)) this.#controller.enqueue(`${PEER_PREFIX}${peer}`);
      // The other half may be ours, too, and the same key may be another one's from now on.
      if (side) for (const role of ['source', 'target'] as const) this.#enqueueAll('side', sideId(role, side.key));
      // Another half speaks for the guest from now on.
      if (side && isFinalMigration(object)) this.#enqueueAll('pairGuest', guestKeyOf(object));
    });
    this.#guests.onChange(({ object }) => this.#enqueueAll('pairGuest', keyOf(object)));
    this.#nodes.onChange(({ object, old }) => {
      if (old && deepEqual(agentKeysOf(object.metadata.annotations), agentKeysOf(old.metadata.annotations))) return;
      for (const key of this.#talks.migrations()) this.#controller.enqueue(key);
    });
    this.#kubeVirts.onChange(({ object, old }) => {
      const isNews = !deepEqual(object.status?.synchronizationAddresses, old?.status?.synchronizationAddresses);
      if (!isNews) return;
      for (const each of this.#migrations.list()) if (sideOf(each)) this.#controller.enqueue(keyOf(each));
    });
  }

  #enqueueAll(index: 'side' | 'pairGuest' | 'peer' | 'connectURL', value: string): void {
    for (const migration of this.#migrations.byIndex(index, value)) this.#controller.enqueue(keyOf(migration));
  }

  #meant(role: Role, key: string): Migration | undefined {
    return meant(this.#migrations.byIndex('side', sideId(role, key)));
  }

  #isOwnAddress(connectURL: string): boolean {
    const address = hostAndPort(connectURL);
    const advertised = [...this.#kubeVirts.list()].flatMap(({ status }) => status?.synchronizationAddresses ?? []);
    return [...this.#options.addresses(), ...advertised].some((each) => hostAndPort(each) === address);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    if (key.startsWith(PEER_PREFIX)) return this.#settleWith(key.slice(PEER_PREFIX.length), signal);
    const migration = this.#migrations.get(key);
    const side = migration && sideOf(migration);
    const talk = this.#talks.get(key);
    if (talk && (!side || talk.uid !== migration.metadata.uid)) this.#end(key, talk.side);
    if (!side) return;
    try {
      return await this.#bring(migration, side, signal);
    } catch (error) {
      // Somebody else wrote at the same time, or it is gone; we hear of it, and begin anew.
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) return;
      if (error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
  }

  /** A cluster in which trust was revoked is trusted no more once no migration of ours has to do with it. */
  async #settleWith(peer: string, signal: AbortSignal): Promise<Result | void> {
    if (!this.#isRevoked(peer) || this.#migrations.byIndex('peer', peer).some(isKept)) return;
    // A guest that is on its way would be lost sight of: a cache that is late is not believed.
    const { items } = await this.#client.list(virtualMachineInstanceMigrations, {}, signal);
    if (items.some((each) => peerOf(each) === peer && isKept(each))) return { requeueAfterMs: RECHECK_MS };
    await this.#options.trust.release(peer, signal);
  }

  /** We do not speak for this migration any more, and do not listen for it. */
  #end(key: string, side: Side): void {
    this.#hearing.forget(side);
    this.#talks.end(key);
  }

  async #bring(looked: Migration, side: Side, signal: AbortSignal): Promise<Result | void> {
    const key = keyOf(looked);
    const isOver = isFinalMigration(looked) && !isKept(looked);
    const keyHolder = this.#meant(side.role, side.key);
    if (isOver || keyHolder !== looked || this.#isOfOneGuest(looked, side)) {
      if (this.#talks.get(key)) this.#end(key, side);
      if (isOver) await this.#tellGuest(looked, this.#guests.get(guestKeyOf(looked)), {}, undefined, signal);
      return hasKey(looked) && keyHolder && isFinalMigration(keyHolder)
        ? this.#await(keyHolder, looked, signal)
        : undefined;
    }
    const talk = this.#talks.begin(key, looked.metadata.uid ?? '', side);
    const migration = await this.#bind(looked, side, signal);
    // Whoever is spoken to may answer before our own cache has heard to whom we are bound.
    talk.peer = peerOf(migration) ?? talk.peer;
    const link = this.#links.of(side, peerOf(migration));
    const guest = this.#guests.get(guestKeyOf(migration));
    const isEnded = isFinalMigration(migration);
    this.#offer(migration, guest, talk, link);
    const { problem, wakeMs } = this.#problem(migration, guest, talk, link);
    await this.#hear(migration, guest, talk, isEnded ? undefined : problem, signal);
    const told = await this.#tell(migration, problem, signal);
    if (isEnded && isKept(told) && this.#mayGo(told, guest, talk, link)) await release(this.#client, told, signal);
    return soonest([{ requeueAfterMs: wakeMs }, { requeueAfterMs: this.#talks.tryAgainMs(talk) }]);
  }

  /** The key is a half's that has yet to be heard out: we speak for the one that comes after it when that is gone. */
  async #await(keyHolder: Migration, next: Migration, signal: AbortSignal): Promise<Result | void> {
    const sinceMs = Date.parse(next.metadata.creationTimestamp ?? '');
    const wakeMs = sinceMs + PROBLEM_GRACE_MS - this.#env.clock.now();
    if (wakeMs > 0) return { requeueAfterMs: wakeMs };
    const problem = keyInUse(keyOf(keyHolder), peerOf(keyHolder) ?? '');
    await this.#tellGuest(next, this.#guests.get(guestKeyOf(next)), {}, problem, signal);
    await this.#tell(next, problem, signal);
  }

  /** Both halves are of one guest, and nobody needs to carry anything. */
  #isOfOneGuest(migration: Migration, side: Side): boolean {
    const other = this.#meant(otherRole(side.role), side.key);
    return other !== undefined && isOneGuest(migration, other);
  }

  /** Before the first word: the migration is bound to whom it is said to, and stays until that one knows the end. */
  async #bind(migration: Migration, side: Side, signal: AbortSignal): Promise<Migration> {
    this.#wantAddress(migration, side);
    if (isKept(migration) && peerOf(migration) !== undefined) return migration;
    if (isFinalMigration(migration) || migration.metadata.deletionTimestamp !== undefined) return migration;
    const peer = side.role === 'target' ? this.#hearing.callerOf(side) : this.#calleeOf(side);
    if (peer === undefined || this.#isRevoked(peer)) return migration;
    return keep(this.#client, migration, peer, signal);
  }

  /** A source has its address dialed, unless it knows that its target is here. */
  #wantAddress(migration: Migration, { connectURL }: Side): void {
    if (connectURL === undefined) return;
    const isOwn = peerOf(migration) === this.#options.clusterId;
    if (isOwn) this.#links.unwant(keyOf(migration), connectURL);
    else this.#links.want(keyOf(migration), connectURL);
  }

  /** The cluster that a source has reached; ourselves only where somebody here receives. */
  #calleeOf(side: Side): string | undefined {
    if (this.#links.isLoop(side) && !this.#meant('target', side.key)) return undefined;
    const { channel } = this.#links.of(side, undefined);
    return channel?.isOpen === true ? channel.peer : undefined;
  }

  /** Says what there is to say. What cannot be sent now is sent when it can. */
  #offer(migration: Migration, guest: Guest | undefined, talk: Talk, { channel }: Link): void {
    const { role } = talk.side;
    if (!channel || !isKept(migration) || peerOf(migration) !== channel.peer) return;
    const state = ownStateOf(role, migration, guest);
    if (!state && !isFinalMigration(migration)) return;
    const node = this.#nodes.get(ownNodeOf(role, migration, guest) ?? '');
    const half = projectHalf(role, { migration, guest, node });
    this.#talks.offer(talk, channel, half);
  }

  /** Writes into our guest what the other side has said, and tells that side once it is there. */
  async #hear(
    migration: Migration,
    guest: Guest | undefined,
    { side, refusal }: Talk,
    problem: Problem | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const peer = peerOf(migration);
    const heard = peer === undefined ? undefined : this.#hearing.of(side, peer);
    // Without a guest it cannot be kept: what is heard is answered when the migration is released.
    if (!guest) return;
    const { status, isKnown, refusal: answer } = heard ? taken(side.role, migration, guest, heard.half) : UNHEARD;
    if (heard && answer) this.#hearing.refuse(side, heard, answer);
    const isToStop = refusal?.cause.reason === 'Gone' || this.#isFutile(migration);
    const next = isToStop ? { ...status, ...stopped(side.role, migration, guest, status) } : status;
    await this.#tellGuest(migration, guest, next ?? {}, problem, signal);
    if (heard && isKnown && !heard.isSettled) this.#hearing.settle(heard);
  }

  /** Writes into our guest what was heard, and what is in the way, which only one of its halves says; the last takes it back. */
  async #tellGuest(
    migration: Migration,
    guest: Guest | undefined,
    status: Partial<PairStatus>,
    problem: Problem | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (!guest) return;
    const spokesman = spokesmanOf(guest, this.#migrations.byIndex('pairGuest', keyOf(guest)));
    const isSpeaking = spokesman === undefined || spokesman.metadata.uid === migration.metadata.uid;
    const nowMs = this.#env.clock.now();
    const said = isSpeaking
      ? { conditions: withProblem(guest.status?.conditions, FAILURE_CONDITION, problem, nowMs) }
      : {};
    await tellGuest(this.#client, guest, { ...status, ...said }, signal);
  }

  /** What is in the way, once it has been for a while, and when to look again. */
  #problem(
    migration: Migration,
    guest: Guest | undefined,
    talk: Talk,
    link: Link,
  ): { readonly problem: Problem | undefined; readonly wakeMs: number } {
    const isEnded = isFinalMigration(migration);
    const refusal = this.#talks.refusalOf(talk);
    const problem =
      link.problem ??
      (refusal
        ? { reason: refusal.reason, message: `the other side does not want it: ${refusal.message}` }
        : undefined) ??
      (isEnded ? undefined : this.#silence(migration, guest, talk.side, link));
    if (!problem) {
      delete talk.problemSinceMs;
      return { problem: undefined, wakeMs: Number.POSITIVE_INFINITY };
    }
    talk.problemSinceMs ??= this.#env.clock.now();
    const fromMs = Math.max(talk.problemSinceMs + PROBLEM_GRACE_MS, link.problemFromMs ?? 0);
    const wakeMs = fromMs - this.#env.clock.now();
    if (wakeMs > 0) return { problem: undefined, wakeMs };
    return { problem, wakeMs: Number.POSITIVE_INFINITY };
  }

  /** That the other side has not been heard, which is nobody's fault yet. */
  #silence(migration: Migration, guest: Guest | undefined, side: Side, { channel }: Link): Problem | undefined {
    // Who has not begun has not said anything, either.
    if (!ownStateOf(side.role, migration, guest)) return undefined;
    if (boundUidOf(side.role, migration, guest) !== undefined) return undefined;
    const here = 'this cluster';
    if (side.role === 'target') return silence(side.role, this.#options.addresses().join(' or ') || here);
    if (!channel) return undefined;
    return silence(side.role, channel.peer === this.#options.clusterId ? here : `the cluster ${channel.peer}`);
  }

  #tell(migration: Migration, problem: Problem | undefined, signal: AbortSignal): Promise<Migration> {
    const addresses = this.#options.addresses();
    return tellMigration(this.#client, migration, { addresses, problem, nowMs: this.#env.clock.now() }, signal);
  }

  /** Whether a migration that is over need not be kept any more for the sake of the other side. */
  #mayGo(migration: Migration, guest: Guest | undefined, talk: Talk, { channel, problem }: Link): boolean {
    if (talk.isEndKnown || !hasHeard(migration)) return true;
    // A source can dial, and hear that the other is gone; were it gone itself, its target could wait for it for ever. Where it is
    // not let in any more it hears nothing: trust is revoked there once all is settled.
    const mayAsk = talk.side.role === 'source' && problem?.reason !== 'NotTrusted';
    if (!mayAsk && this.#isOtherOver(migration, guest, talk.side)) return true;
    // Nobody can have begun, or nobody is to be waited for: the other side's own patience ends it, too.
    const isRevoked = this.#isRevoked(peerOf(migration) ?? '');
    const isDispensable = !mayOtherRely(talk.side.role, migration, guest) || isRevoked;
    return isDispensable && channel?.isOpen !== true;
  }

  /**
   * Whether the other half is known to be over, or gone: nothing that it could hear from us changes how it ended. Sources that are
   * over hang up, whether or not their target has said the same by then.
   */
  #isOtherOver(migration: Migration, guest: Guest | undefined, side: Side): boolean {
    if (isOtherEnded(side.role, migration, guest)) return true;
    const peer = peerOf(migration);
    const heard = peer === undefined ? undefined : this.#hearing.of(side, peer);
    return heard !== undefined && (heard.half === undefined || heard.half.verdict !== undefined);
  }

  /** Whether nothing should come of it, and nothing has begun that would have to be brought to its end. */
  #isFutile(migration: Migration): boolean {
    const peer = peerOf(migration);
    return peer !== undefined && !wasHandedOff(migration) && this.#isRevoked(peer);
  }

  /** Whether nothing new may begin with a cluster. Ourselves we trust. */
  #isRevoked(peer: string): boolean {
    return peer !== this.#options.clusterId && this.#options.trust.isRevoked(peer);
  }
}
