import type { EventReason } from '../../api/event-reasons.ts';
import { isMarked } from '../../api/kubevirt/evacuation.ts';
import { wantsEvacuation } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirt, KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { ServedCause } from '../../api/kubevirt/migration-cause.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { RUNNING_PRIORITY } from '../../api/kubevirt/migration-priority.ts';
import { arePair, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result, soonest } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import {
  kubeVirts,
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import { keyOf, splitKey } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { servedCauses } from '../../migration/causes/served-causes.ts';
import { ownerUidOf } from '../../migration/halves/pair-state.ts';
import { syncTimeoutMs } from '../../migration/phase/deadlines.ts';
import { decide } from '../../migration/phase/decide.ts';
import type { MigrationDecision } from '../../migration/phase/decision.ts';
import { type MigrationFacts, sourceNodeOf } from '../../migration/phase/facts.ts';
import { hasBetterRival } from '../../migration/phase/rivals.ts';
import { type StatusInput, statusAfter } from '../../migration/phase/status.ts';
import type { ControlContext } from '../context.ts';
import { MovingGuests, tellsOf } from '../moving-guests.ts';
import { type LauncherPod, pods } from '../resources.ts';
import { isLauncherOutdated } from '../vmi/outdated-launcher.ts';
import type { KubeletLaunchers } from '../vmi/launcher-pod.ts';
import { FinishedMigrations } from './finished-migrations.ts';
import { heldUp } from './held-up.ts';
import { guestKeyOf, guestKeysOf, jobKeysOf, migrationUidsOf, pairKeysOf, uidsOf } from './keys.ts';
import { Ledger } from './ledger.ts';
import { slotRules } from './ledger-rules.ts';
import { OutcomeMetrics } from './outcome-metrics.ts';
import { Pairs } from './pairs.ts';
import { requestOfHalf, requestWithin } from './slot-requests.ts';
import { isNewlyUnfit, MigrationSteps, STALE } from './steps.ts';
import { targetPodFacts, targetPodName } from './target-pod.ts';

export interface MigrationsOptions extends ControlContext {
  /** The launcher's image. */
  readonly launcherImage: string;
  /** How launcher pods are where kubelets run them; where absent, agents do. */
  readonly kubelets?: KubeletLaunchers | undefined;
}

const WORKERS = 8;
/** When what we read and what we hear disagree, one of them is late: this is how soon we look again. */
const RECHECK_MS = 1000;

/**
 * Brings each migration within the cluster to its end. It looks at the migration, its guest, its target pod and its
 * slots, asks `src/migration/phase` what is next, does that, and writes the status once. What takes part in the copy is
 * the agents' business: from the hand-off on they speak through the guest's status.
 *
 * Nothing polls. A migration that waits is in the ledger's line and in no queue; it is looked at again when it gets a
 * slot, when its guest changes, or when a deadline of its phase has passed.
 */
export class Migrations implements Service {
  readonly name = 'migrations';
  readonly #env: Env;
  readonly #client: Client;
  readonly #recorder: ControlContext['recorder'];
  readonly #migrations: Informer<VirtualMachineInstanceMigration>;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #pods: Informer<LauncherPod>;
  readonly #kubeVirts: Informer<KubeVirt>;
  readonly #machines: Informer<VirtualMachine>;
  readonly #ledger: Ledger;
  readonly #launcherImage: string;
  readonly #pairs: Pairs;
  readonly #steps: MigrationSteps;
  readonly #finished: FinishedMigrations;
  readonly #outcomes: OutcomeMetrics | undefined;
  readonly #controller: Controller;
  /** What was last heard of copies, by the migration's UID, and when: a clock of ours, since theirs may be wrong. */
  readonly #news = new Map<string, { readonly text: string; readonly atMs: number }>();

  constructor(options: MigrationsOptions) {
    const { env, client, recorder, informers, metrics } = options;
    this.#env = env;
    this.#client = client;
    this.#recorder = recorder;
    const indexes = { guest: guestKeysOf, uid: uidsOf, pair: pairKeysOf };
    this.#migrations = informers.of(virtualMachineInstanceMigrations, indexes);
    this.#guests = informers.of(virtualMachineInstances);
    this.#pods = informers.of(pods, { migration: migrationUidsOf, uid: uidsOf });
    this.#kubeVirts = informers.of(kubeVirts);
    this.#machines = informers.of(virtualMachines);
    this.#launcherImage = options.launcherImage;
    this.#ledger = new Ledger({
      env,
      client,
      rules: () => slotRules(this.#kubeVirt()),
      metrics,
      onChange: ({ members }) => {
        for (const { namespace, name } of members) this.#controller.enqueue(`${namespace}/${name}`);
      },
    });
    const configuration = (): KubeVirtConfiguration => this.#configuration();
    // With its other half, which asks for the slots of both: it has given them back while this one had no use for them.
    const wake = (key: string): void => {
      const migration = this.#migrations.get(key);
      if (migration) this.#enqueue(migration);
    };
    this.#pairs = new Pairs(options);
    this.#steps = new MigrationSteps({ ...options, configuration, wake, pairs: this.#pairs });
    this.#finished = new FinishedMigrations({ ...options, configuration });
    this.#outcomes = metrics && new OutcomeMetrics(metrics.registry);
    this.#controller = new Controller({
      name: 'migration-controller',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      priorityOf: (key) => priorityOf(this.#migrations.get(key)),
      ...(metrics ? { metrics } : {}),
    });
    this.#listen(new MovingGuests(informers));
  }

  async run(signal: AbortSignal): Promise<void> {
    // Everybody who waits is in line before the first slot is given.
    for (const migration of this.#migrations.list()) if (!isFinalMigration(migration)) this.#want(migration);
    this.#ledger.open();
    await Promise.all([this.#ledger.run(signal), this.#controller.run(signal)]);
  }

  #listen(moving: MovingGuests): void {
    this.#migrations.onChange(({ type, object, old }) => {
      const { uid = '' } = object.metadata;
      if (old && old.metadata.uid !== uid) this.#forget(old);
      if (type === 'deleted') this.#forget(object);
      this.#enqueue(object);
      // One that is over may be what another one waits for.
      if (type === 'deleted' || isFinalMigration(object))
        for (const each of this.#unfinishedOf(guestKeyOf(object))) this.#controller.enqueue(keyOf(each));
    });
    this.#guests.onChange(({ type, object, old }) => {
      const { migrationState } = object.status ?? {};
      // One that is over is told what the agents say of it in the end.
      const isNews = !deepEqual(migrationState, old?.status?.migrationState);
      const isOf = ({ metadata }: VirtualMachineInstanceMigration): boolean =>
        [object, old].some((guest) => tellsOf(guest, metadata.uid));
      const afterMs = type === 'deleted' ? 0 : moving.patienceMs(object);
      for (const each of this.#migrations.byIndex('guest', keyOf(object)))
        if (type === 'deleted' || !isFinalMigration(each) || (isNews && isOf(each))) this.#enqueue(each, afterMs);
    });
    this.#pods.onChange(({ object }) => {
      for (const key of jobKeysOf(object)) {
        this.#controller.enqueue(key);
        const migration = this.#migrations.get(key);
        if (migration) this.#enqueue(migration);
      }
    });
    this.#kubeVirts.onChange(({ object, old }) => {
      this.#ledger.rulesChanged();
      // Those that wait for their other halves may have to sooner or later now.
      if (!old || syncTimeoutMs(object.spec.configuration ?? {}) === syncTimeoutMs(old.spec.configuration ?? {}))
        return;
      for (const each of this.#migrations.list())
        if (pairKeyOf(each.spec) !== undefined && !isFinalMigration(each)) this.#controller.enqueue(keyOf(each));
    });
    // With a machine goes what was kept of where its guest went.
    this.#machines.onChange(({ type, object }) => {
      if (type === 'deleted')
        for (const each of this.#migrations.byIndex('guest', keyOf(object))) this.#controller.enqueue(keyOf(each));
    });
  }

  /** Has a migration looked at, and its other half where that is in this cluster, too. */
  #enqueue(migration: VirtualMachineInstanceMigration, afterMs = 0): void {
    this.#controller.enqueue(keyOf(migration), { afterMs });
    for (const each of this.#pairs.withKeyOf(migration))
      if (!isFinalMigration(each)) this.#controller.enqueue(keyOf(each), { afterMs });
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    const migration = this.#migrations.get(key);
    try {
      if (!migration) return;
      if (isFinalMigration(migration)) return await this.#finish(migration, signal);
      return await this.#bring(migration, signal);
    } catch (error) {
      // Somebody else wrote at the same time, or it is gone; we hear of it, and begin anew.
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) return;
      if (error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
  }

  async #bring(migration: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<Result | void> {
    const heard = await this.#observe(migration, signal);
    if (!(await this.#pairs.isWholeKnown(migration, heard.guest, signal))) return { requeueAfterMs: RECHECK_MS };
    // What ends a migration is believed of the server alone: we may not have heard yet of what we did ourselves.
    const isFailing = decide(heard).phase === 'Failed';
    const facts = isFailing ? await this.#ascertained(heard, signal) : heard;
    const decision = decide(facts);
    const source = this.#sourcePod(facts.guest);
    const target = this.#targetPod(migration, facts.guest);
    const done = await this.#steps.make(facts, decision, { source, target }, signal);
    if (done === STALE) return { requeueAfterMs: RECHECK_MS };
    const told = await this.#tell(done.facts, { ...done.input, sourcePod: source?.metadata.name }, signal);
    this.#tellPeople(migration, told, done.input, decision);
    if (isFinalMigration(told)) {
      this.#outcomes?.finished(told, done.input.failure);
      return this.#finish(told, signal);
    }
    const untilMs = this.#want(told);
    if (untilMs !== undefined && facts.guest && migration.status?.phase === undefined)
      this.#recorder.event(
        facts.guest,
        'Warning',
        'MigrationBackoff',
        `backoff migrating vmi ${guestKeyOf(migration)}`,
      );
    const wakes = [untilMs, decision.wakeAtMs, done.wakeAtMs].map((atMs) => (atMs === undefined ? {} : this.#at(atMs)));
    return soonest(wakes);
  }

  #at(atMs: number): Result {
    return { requeueAfterMs: Math.max(0, atMs - this.#env.clock.now()) };
  }

  async #observe(migration: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<MigrationFacts> {
    const { uid = '' } = migration.metadata;
    const key = guestKeyOf(migration);
    const guest = this.#guests.get(key) ?? (await this.#unseenGuest(key, signal));
    const pod = this.#targetPod(migration, guest);
    const nowMs = this.#env.clock.now();
    const slots = this.#slots(migration, guest, pod);
    return {
      migration,
      guest,
      targetPod: pod && targetPodFacts(pod),
      slots,
      pair: await this.#pairs.facts(migration, guest, slots, signal),
      causes: this.#causes(migration, guest),
      hasBetterRival: hasBetterRival(migration, this.#migrations.byIndex('guest', key)),
      isEvacuated: this.#isEvacuated(guest),
      isOtherOwnerAlive: this.#isOwnedByAnother(migration, guest),
      newsMs: this.#newsMs(uid, guest, nowMs),
      nowMs,
      syncTimeoutMs: syncTimeoutMs(this.#configuration()),
    };
  }

  /** The same facts, with guest and target pod as they are on the server now. */
  async #ascertained(facts: MigrationFacts, signal: AbortSignal): Promise<MigrationFacts> {
    const { migration } = facts;
    const guest = await this.#unseenGuest(guestKeyOf(migration), signal);
    const { namespace = '' } = migration.metadata;
    const targets = this.#targetMigration(migration, guest);
    const pod = guest && (await this.#client.find(pods, namespace, targetPodName(guest, targets), signal));
    const isOurs = pod !== undefined && migrationUidsOf(pod).includes(targets.metadata.uid ?? '');
    const slots = this.#slots(migration, guest, pod);
    return {
      ...facts,
      guest,
      causes: this.#causes(migration, guest),
      isEvacuated: this.#isEvacuated(guest),
      targetPod: isOurs ? targetPodFacts(pod) : undefined,
      slots,
      pair: await this.#pairs.facts(migration, guest, slots, signal),
      isOtherOwnerAlive: this.#isOwnedByAnother(migration, guest),
    };
  }

  #causes(migration: VirtualMachineInstanceMigration, guest: VirtualMachineInstance | undefined): ServedCause[] {
    const { workloadUpdateMethods = [] } = this.#kubeVirt()?.spec.workloadUpdateStrategy ?? {};
    const isUpdatedByMoving = workloadUpdateMethods.includes('LiveMigrate');
    const isOutdated = isUpdatedByMoving && guest !== undefined && isLauncherOutdated(guest, this.#launcherImage);
    return servedCauses(migration, guest, { isOutdated });
  }

  /** Whoever is marked, and ours to move, is moved by us. */
  #isEvacuated(guest: VirtualMachineInstance | undefined): boolean {
    return guest !== undefined && isMarked(guest) && wantsEvacuation(guest, this.#configuration());
  }

  #configuration(): KubeVirtConfiguration {
    return this.#kubeVirt()?.spec.configuration ?? {};
  }

  /** The slots that a migration has; the halves of a pair in this cluster have them together, and the source asks. */
  #slots(
    migration: VirtualMachineInstanceMigration,
    guest: VirtualMachineInstance | undefined,
    pod: LauncherPod | undefined,
  ): MigrationFacts['slots'] {
    const { source, target } = this.#pairs.of(migration, guest) ?? {};
    const asker = source && target ? source : migration;
    const leaver = asker === migration ? guest : this.#pairs.guestOf(asker);
    const holder = this.#ledger.holder(asker.metadata.uid ?? '');
    if (holder?.state !== 'committed') return holder?.state;
    const isLeaving = holder.sourceNode === undefined || holder.sourceNode === sourceNodeOf(leaver);
    const isComing = holder.kind === 'send' || holder.targetNode === this.#arrivalOf(asker, leaver, pod);
    return isLeaving && isComing ? 'committed' : 'elsewhere';
  }

  /** The node that the target pod of a pair is on, whichever half asks. */
  #arrivalOf(
    asker: VirtualMachineInstanceMigration,
    guest: VirtualMachineInstance | undefined,
    pod: LauncherPod | undefined,
  ): string | undefined {
    return (pod ?? this.#pairPod(asker, guest))?.spec?.nodeName;
  }

  /** The migration that the target pod is of. */
  #targetMigration(
    migration: VirtualMachineInstanceMigration,
    guest: VirtualMachineInstance | undefined,
  ): VirtualMachineInstanceMigration {
    const pair = this.#pairs.of(migration, guest);
    return (pair?.isSameGuest === true ? pair.target : undefined) ?? migration;
  }

  /** The pod that a migration moves its guest to; a source whose target is another guest has none. */
  #targetPod(
    migration: VirtualMachineInstanceMigration,
    guest: VirtualMachineInstance | undefined,
  ): LauncherPod | undefined {
    return this.#pods.byIndex('migration', this.#targetMigration(migration, guest).metadata.uid ?? '')[0];
  }

  /** The pod that a pair in this cluster moves its guest to. */
  #pairPod(
    migration: VirtualMachineInstanceMigration,
    guest: VirtualMachineInstance | undefined,
  ): LauncherPod | undefined {
    const { target = migration } = this.#pairs.of(migration, guest) ?? {};
    return this.#pods.byIndex('migration', target.metadata.uid ?? '')[0];
  }

  #isAlive(uid: string): boolean {
    return this.#migrations.byIndex('uid', uid).some((each) => !isFinalMigration(each));
  }

  #isOwnedByAnother(migration: VirtualMachineInstanceMigration, guest: VirtualMachineInstance | undefined): boolean {
    const owner = guest ? ownerUidOf(guest) : '';
    return (
      owner !== migration.metadata.uid &&
      this.#migrations
        .byIndex('uid', owner)
        .some((each) => !isFinalMigration(each) && !arePair(each.spec, migration.spec))
    );
  }

  /** That there is no guest is believed of the server alone. */
  #unseenGuest(key: string, signal: AbortSignal): Promise<VirtualMachineInstance | undefined> {
    const { namespace, name } = splitKey(key);
    return this.#client.find(virtualMachineInstances, namespace, name, signal);
  }

  #newsMs(uid: string, guest: VirtualMachineInstance | undefined, nowMs: number): number {
    const { startTimestamp = '', progress, mode = '' } = guest?.status?.migrationState ?? {};
    const text = `${startTimestamp} ${progress?.time ?? ''} ${mode}`;
    const known = this.#news.get(uid);
    if (known?.text === text) return known.atMs;
    this.#news.set(uid, { text, atMs: nowMs });
    return nowMs;
  }

  /** The pod that executes the guest. */
  #sourcePod(guest: VirtualMachineInstance | undefined): LauncherPod | undefined {
    return this.#pods.byIndex('uid', guest?.status?.rightToRun?.holder?.podUID ?? '')[0];
  }

  /** Says which slots a migration needs now. Answers until when it needs none, where it has to wait that long. */
  #want(migration: VirtualMachineInstanceMigration): number | undefined {
    const { uid = '' } = migration.metadata;
    // One that went while it was looked at wants nothing, and nobody would say so again.
    if (this.#migrations.byIndex('uid', uid).length === 0) return undefined;
    const key = guestKeyOf(migration);
    const guest = this.#guests.get(key);
    const pair = this.#pairs.of(migration, guest);
    const pod = this.#pairPod(migration, guest);
    const request = pair ? requestOfHalf({ migration, guest, pod }, pair) : requestWithin({ migration, guest, pod });
    if (!request) return undefined;
    const held = heldUp({
      migration,
      guest,
      pod,
      isHalf: pair !== undefined,
      others: this.#migrations.byIndex('guest', key),
      isOverQuota: this.#steps.isWaitingForQuota(keyOf(pair?.target ?? migration)),
      deadlineMs: request.deadlineMs,
      nowMs: this.#env.clock.now(),
    });
    this.#ledger.want({ ...request, isHeldUp: held !== undefined });
    return held?.kind === 'Backoff' ? held.untilMs : undefined;
  }

  async #tell(
    facts: MigrationFacts,
    input: StatusInput,
    signal: AbortSignal,
  ): Promise<VirtualMachineInstanceMigration> {
    const { migration } = facts;
    const body = statusPatch(migration, statusAfter(facts, input));
    if (!body) return migration;
    const { namespace = '', name = '' } = migration.metadata;
    const patch = { type: 'merge', body } as const;
    const options = { subresource: 'status' };
    const told = await this.#client.patch(virtualMachineInstanceMigrations, namespace, name, patch, signal, options);
    this.#migrations.wrote(told);
    return told;
  }

  /** What people are told of a change that was written down. */
  #tellPeople(
    before: VirtualMachineInstanceMigration,
    { metadata, status }: VirtualMachineInstanceMigration,
    { failure, unfitness }: StatusInput,
    { step }: MigrationDecision,
  ): void {
    const event = (type: 'Normal' | 'Warning', reason: EventReason, message: string): void =>
      this.#recorder.event(before, type, reason, message);
    const isNew = status?.phase !== before.status?.phase;
    if (isNew && failure) event('Warning', 'FailedMigration', failure.message);
    if (isNew && status?.phase === 'Succeeded')
      event('Normal', 'SuccessfulMigration', 'Source node reported migration succeeded');
    if (step?.kind === 'request-abort')
      event('Normal', 'SuccessfulAbortMigration', 'Migration is ready to be canceled by virt-handler.');
    if (!isNewlyUnfit(before, unfitness)) return;
    const guest = `${metadata.namespace}/${before.spec.vmName ?? before.spec.vmiName}`;
    const message = `Migration target pod for VMI [${guest}] is currently unschedulable. ${unfitness}`;
    event('Warning', 'migrationTargetPodUnschedulable', message);
  }

  async #finish(migration: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<void> {
    this.#forget(migration);
    const key = guestKeyOf(migration);
    const guest = this.#guests.get(key) ?? (await this.#unseenGuest(key, signal));
    const pod = this.#targetPod(migration, guest);
    await this.#pairs.release(migration, signal);
    await this.#finished.settle({ migration, guest, pod }, this.#migrations.byIndex('guest', key), signal);
  }

  #forget(migration: VirtualMachineInstanceMigration): void {
    const { uid = '' } = migration.metadata;
    if (isFinalMigration(migration)) this.#ledger.over(uid);
    else this.#ledger.ended(uid);
    // What a pair in this cluster has it has, by its source, until both of its halves are over.
    const { migrationUID } = migration.status?.migrationState?.sourceState ?? {};
    const known = this.#pairs.withKeyOf(migration).map(({ metadata }) => metadata.uid);
    for (const each of new Set([migrationUID, ...known]))
      if (each !== undefined && each !== uid && !this.#isAlive(each)) this.#ledger.ended(each);
    this.#news.delete(uid);
    this.#steps.forget(keyOf(migration));
  }

  #unfinishedOf(guestKey: string): VirtualMachineInstanceMigration[] {
    return this.#migrations.byIndex('guest', guestKey).filter((each) => !isFinalMigration(each));
  }

  #kubeVirt(): KubeVirt | undefined {
    for (const kubeVirt of this.#kubeVirts.list()) return kubeVirt;
    return undefined;
  }
}

/** What has begun is carried on before anything else begins. */
function priorityOf(migration: VirtualMachineInstanceMigration | undefined): number {
  if (!migration || isFinalMigration(migration)) return 0;
  const { phase = '', effectivePriority = 0 } = migration.status ?? {};
  return phase === '' || phase === 'Pending' ? effectivePriority : RUNNING_PRIORITY;
}
