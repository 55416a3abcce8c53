import { type CopyState, isOver, isPostCopy } from '../../api/copy-state.ts';
import { errorMessage } from '../../api/error-message.ts';
import type { MigrationProgress } from '../../api/kubevirt/migration-progress.ts';
import type { MigrationDecision, MigrationState } from '../../api/kubevirt/migration-state.ts';
import { unreachable } from '../../api/unreachable.ts';
import { sleep } from '../../env/ports.ts';
import { HypervisorError, type Machine, type MachineEvent } from '../../hypervisor/hypervisor.ts';
import type { MachineMigration, MigrationProgress as MachineProgress, Mirror } from '../../hypervisor/migration.ts';
import type { Decision } from '../../migration/monitor/decision.ts';
import { failureOf, giveUp, isRefused, recover, sendMemory, startMirrors } from './copy-commands.ts';
import { channelStatus } from './copy-method.ts';
import {
  type AdoptOptions,
  type CopyContext,
  type CopyFailure,
  type CopyOptions,
  type CredentialFiles,
  inHurry,
} from './copy-options.ts';
import type { Road } from './copy-relays.ts';
import { sampleOf } from './copy-sample.ts';
import { isOfEarlierCopy, lookAt, mirrorFailure } from './copy-sight.ts';
import { watchFromNow, watchFromStart } from './copy-start.ts';
import { dropMirrors, removeCredentials } from './copy-traces.ts';
import type { CopyWatch } from './copy-watch.ts';

/**
 * Drives the copy of one guest, at its source: disks first, then memory, watched by the monitor, up to the end of it.
 *
 *   copying ──▶ switching ──▶ completed            the guest may be granted
 *      │            │
 *      │            └──▶ post-copy ──▶ completed   likewise, once the target says that it is in it too
 *      └────────────┴──▶ failed                    nothing is copied any more; who runs the guest is asked elsewhere
 *
 * It never grants, never continues a guest and writes nothing down: that is the protocol's. What it does once the guest
 * stands still needs the machine alone. It remembers nothing that another agent, which adopts the copy, could not find out.
 */
export type CopyPhase = 'copying' | 'switching' | 'post-copy' | 'completed' | 'failed';

type Channel = NonNullable<MigrationState['channel']>;
type Mode = NonNullable<MigrationState['mode']>;

const LOOK_MS = 400;
/** Passes of small guests follow each other faster than anyone needs to know. */
const LOOK_GAP_MS = 50;
/** How often progress alone is news: writing it down costs more than looking. */
const PROGRESS_NEWS_MS = 2000;
const NEVER = Number.NEGATIVE_INFINITY;

export class Copy {
  /** Resolves once nothing is done here any more; never rejects. */
  readonly settled: Promise<void>;
  readonly #context: CopyContext;
  readonly #migration: MachineMigration;
  readonly #channel: Channel;
  readonly #leaving = new AbortController();
  #news = new AbortController();
  #watch: CopyWatch | undefined;
  #state: CopyPhase = 'copying';
  #failure: CopyFailure | undefined;
  #mode: Mode = 'PreCopy';
  #stoppedAtMs: number | undefined;
  /** Why it is being given up, while it is. */
  #givingUp: CopyFailure | undefined;
  /** What a cancel must not overtake, since more would follow from it. */
  #underWay: Promise<void> = Promise.resolve();
  /** Sends memory, once disks are whole; until then what the machine says of memory is of an earlier copy. */
  #startMemory: (() => Promise<void>) | undefined;
  #credentials: CredentialFiles | undefined;
  #road: Road | undefined;
  #isAtSwitchover = false;
  #hasSwitchedOver = false;
  #isAdopted = false;
  #lookedAtMs = NEVER;
  /** How a copy goes is news only of one that takes its time: of a quick one its end is. */
  #toldProgressAtMs: number;

  private constructor(context: CopyContext, channel: Channel, begin: (copy: Copy) => Promise<void>) {
    this.#context = context;
    this.#channel = channel;
    this.#migration = context.machine.migration;
    this.#toldProgressAtMs = context.env.clock.now();
    this.settled = this.#run(() => begin(this));
  }

  /** Begins at once; the guest's successor must have been reserved before. */
  static start(options: CopyOptions): Copy {
    return new Copy(options, channelStatus(options.method), (copy) => copy.#begin(options));
  }

  /** Goes on with a copy that a former agent began; fails it where that had not got as far as memory. */
  static adopt(options: AdoptOptions): Copy {
    const { channel = channelStatus({ isEncrypted: true }) } = options.known;
    return new Copy(options, channel, (copy) => copy.#adopt(options));
  }

  get state(): CopyPhase {
    return this.#state;
  }

  /** Present once it has failed. */
  get failure(): CopyFailure | undefined {
    return this.#failure;
  }

  get mode(): Mode {
    return this.#mode;
  }

  /** What it is sent with. */
  get channel(): Channel {
    return this.#channel;
  }

  get progress(): MigrationProgress | undefined {
    return this.#watch?.progress;
  }

  get decisions(): readonly MigrationDecision[] {
    return this.#watch?.decisions ?? [];
  }

  /** Since when the guest stands still, by the host's clock; undefined while it runs. */
  get stoppedAtMs(): number | undefined {
    return this.#stoppedAtMs;
  }

  /**
   * Gives up. Resolves when the machine copies no more, whether it was stopped, was over already, or never began. Rejects
   * with a HypervisorError: `Refused` in post-copy, which goes on; else it may be asked again.
   */
  async cancel(): Promise<void> {
    const failure = (this.#givingUp ??= { reason: 'Cancelled', message: 'the migration was cancelled' });
    await this.#underWay;
    await this.#giveUp(failure);
  }

  /** Lets go of the copy, which goes on by itself as far as it can. */
  detach(): void {
    this.#leaving.abort();
    this.#news.abort();
  }

  get #isDriven(): boolean {
    return this.#state !== 'completed' && this.#state !== 'failed' && !this.#leaving.signal.aborted;
  }

  async #run(begin: () => Promise<void>): Promise<void> {
    const { machine, env } = this.#context;
    const forget = machine.onEvent((event) => this.#hear(event));
    const forgetEnd = onEnded(machine, (message) => this.#fail({ reason: 'MachineGone', message }));
    while (this.#isDriven) {
      try {
        await this.#step(begin);
      } catch (error) {
        env.log.warn('a machine whose guest is copied does not obey', { error: errorMessage(error) });
        // It will not say otherwise; one that does not answer is asked again.
        if (!this.#watch && isRefused(error)) await this.#tryGiveUp(failureOf(error));
      }
      await this.#pause();
    }
    if (this.#state === 'completed') await this.#lookBack();
    forget();
    forgetEnd();
    await this.#forgetCredentials();
    this.#road?.close();
    if (this.#failure) await dropMirrors(this.#context, this.#failure);
  }

  #step(begin: () => Promise<void>): Promise<void> {
    if (!this.#watch) return begin();
    return this.#isAtSwitchover ? this.#goOver() : this.#look();
  }

  #hear(event: MachineEvent): void {
    const { hooks, env } = this.#context;
    if (!this.#isDriven) return;
    if (event.kind === 'stopped') {
      this.#stoppedAtMs = event.atMs ?? env.clock.now();
      return hooks.onStill();
    }
    if (event.kind === 'resumed') {
      this.#stoppedAtMs = undefined;
      return hooks.onNews();
    }
    if (event.kind === 'migration') {
      this.#isAtSwitchover = event.state === 'pre-switchover';
      // Heard, not asked for: nothing waits for a question while the guest stands still.
      if (event.state === 'completed') this.#become('completed');
    } else if (event.kind !== 'migration-pass' && event.kind !== 'mirror') return;
    if (event.kind !== 'migration-pass') this.#lookedAtMs = NEVER;
    this.#news.abort();
  }

  /** Waits until there is something to see. */
  async #pause(): Promise<void> {
    const { clock } = this.#context.env;
    if (!this.#isDriven) return;
    await sleep(clock, LOOK_MS, this.#news.signal);
    this.#news = new AbortController();
    const gapMs = this.#lookedAtMs + LOOK_GAP_MS - clock.now();
    if (gapMs > 0 && this.#isDriven) await sleep(clock, gapMs, this.#news.signal);
  }

  /** Looks at everything once, and does what has to be done about it. */
  async #look(): Promise<void> {
    const { env } = this.#context;
    this.#lookedAtMs = env.clock.now();
    const { seen, mirrors } = await lookAt(this.#context, this.#startMemory !== undefined);
    if (this.#givingUp || !this.#isDriven) return;
    if (this.#isAtSwitchover) return this.#goOver();
    const decision = this.#watch?.consider(seen && sampleOf(seen, mirrors));
    if (seen && isOver(seen.state)) return this.#end(seen);
    const failure = seen && mirrorFailure(this.#context, seen.state, mirrors);
    if (failure) return this.#tryGiveUp(failure);
    if (decision) await this.#carryOut(decision);
    if (seen && this.#isDriven) await this.#proceed(seen.state, mirrors);
  }

  #end({ state, message }: MachineProgress): void {
    this.#watch?.carriedOut();
    if (state === 'completed') return this.#become('completed');
    this.#fail({ reason: 'CopyFailed', message: message ?? `the machine says of its copy: ${state}` });
  }

  async #proceed(state: CopyState, mirrors: readonly Mirror[]): Promise<void> {
    if (state === 'pre-switchover') return this.#goOver();
    if (isPostCopy(state) && (this.#hasSwitchedOver || this.#isAdopted)) {
      this.#mode = 'PostCopy';
      // It says that it is in post-copy before its guest stands still.
      if ((await this.#context.machine.status()) !== 'running') this.#become('post-copy');
    }
    const startMemory = this.#startMemory;
    if (startMemory && mirrors.every((mirror) => mirror.state === 'whole')) {
      this.#news.abort();
      try {
        await this.#uninterrupted(startMemory);
      } catch (error) {
        return this.#tryGiveUp(failureOf(error));
      }
    }
    this.#tellProgress();
  }

  async #carryOut(decision: Decision): Promise<void> {
    const { env, hooks } = this.#context;
    try {
      await this.#act(decision);
    } catch (error) {
      const fields = { decision: decision.kind, error: errorMessage(error) };
      env.log.warn('what was decided about a copy could not be done', fields);
      if (decision.kind === 'post-copy' && isRefused(error)) this.#watch?.forbidPostCopy();
      // A link is mended again after a while; anything else is decided anew.
      if (decision.kind !== 'recover') return;
    }
    this.#watch?.carriedOut();
    if (decision.kind !== 'keep-copying' && decision.kind !== 'nothing') hooks.onNews();
  }

  #act(decision: Decision): Promise<void> | undefined {
    switch (decision.kind) {
      case 'keep-copying':
      case 'nothing':
      case 'throttle':
        return undefined;
      case 'set-downtime':
        return this.#migration.setLimits({ downtimeMs: decision.downtimeMs });
      case 'post-copy':
        return this.#uninterrupted(async () => {
          await this.#migration.startPostCopy();
          this.#mode = 'PostCopy';
        });
      case 'pause':
        return this.#uninterrupted(async () => {
          await this.#context.machine.stop();
          this.#mode = 'Paused';
        });
      case 'recover':
        return recover(this.#migration, this.#context.hooks, this.#leaving.signal);
      case 'give-up':
        return this.#giveUp({ reason: decision.reason, message: decision.message });
      default:
        return unreachable(decision);
    }
  }

  /** Disks end here and only here: the guest writes to none of them any more. */
  async #goOver(): Promise<void> {
    this.#isAtSwitchover = false;
    if (this.#givingUp || this.#hasSwitchedOver) return;
    this.#become('switching');
    if ((await this.#context.hooks.isTargetThere?.()) === false) {
      const message = 'the agent of the target does not answer, and the guest would stand still there';
      return this.#tryGiveUp({ reason: 'TargetUnreachable', message });
    }
    if (this.#context.disks.length > 0) {
      try {
        await this.#finishMirrors();
      } catch (error) {
        const message = `a disk cannot be copied: ${errorMessage(error)}`;
        return this.#tryGiveUp({ reason: 'MirrorFailed', message });
      }
    }
    await this.#uninterrupted(() => this.#migration.switchOver());
    this.#hasSwitchedOver = true;
  }

  async #finishMirrors(): Promise<void> {
    // A former agent may have ended some; those that were begun here have to be there.
    const failure = this.#isAdopted
      ? undefined
      : mirrorFailure(this.#context, 'active', await this.#migration.mirrors());
    if (failure) throw new HypervisorError('Refused', failure.message);
    await this.#migration.finishMirrors();
  }

  async #begin(asked: CopyOptions): Promise<void> {
    const options = inHurry(asked);
    const { machine } = options;
    // What it would write meanwhile would be lost.
    const mustStandStill = (await machine.memory?.isTracked()) === false;
    this.#credentials = options.credentials;
    this.#road = options.road;
    const watch = await watchFromStart(asked, options, mustStandStill);
    this.#watch = watch;
    this.#startMemory = async () => {
      this.#startMemory = undefined;
      if (mustStandStill) {
        await machine.stop();
        this.#mode = 'Paused';
      }
      await sendMemory(this.#migration, options, watch.firstDowntimeMs);
      await this.#forgetCredentials();
    };
    this.#news.abort();
    if (options.disks.length === 0) return;
    try {
      await this.#uninterrupted(() => startMirrors(this.#migration, options));
    } catch (error) {
      const message = `a disk cannot be copied: ${errorMessage(error)}`;
      await this.#tryGiveUp({ reason: 'MirrorFailed', message });
    }
  }

  async #adopt(adopted: AdoptOptions): Promise<void> {
    const { known, env, machine, hooks } = adopted;
    this.#isAdopted = true;
    this.#mode = known.mode || 'PreCopy';
    const { state } = await this.#migration.progress();
    const isEarlier = state === 'completed' && (await isOfEarlierCopy(machine, env.clock));
    const status = await machine.status();
    if (isEarlier || state === 'none' || state === 'failed' || state === 'cancelled') {
      // Nobody sends it any more; but what the machine says of memory is not of this copy.
      if (isEarlier) this.#startMemory = () => Promise.resolve();
      const message = 'the agent was restarted, and nothing of the guest was being copied any more';
      return this.#giveUp({ reason: 'AgentRestarted', message });
    }
    if (status !== 'running') {
      this.#stoppedAtMs ??= env.clock.now();
      hooks.onStill();
    }
    this.#watch = await watchFromNow(adopted, {
      isPaused: status !== 'running' && state === 'active',
      mode: this.#mode,
    });
    this.#news.abort();
  }

  /** Gives up, or leaves it at that: the next look tells what became of it. */
  async #tryGiveUp(failure: CopyFailure): Promise<void> {
    try {
      await this.#giveUp(failure);
    } catch (error) {
      this.#context.env.log.warn('a copy cannot be given up', { error: errorMessage(error) });
    }
  }

  async #giveUp(failure: CopyFailure): Promise<void> {
    if (this.#state === 'failed') return;
    this.#givingUp ??= failure;
    try {
      const state = await giveUp(this.#migration, this.#context.env.clock);
      if (state === 'completed' && !this.#startMemory) this.#become('completed');
      else this.#fail(failure);
    } finally {
      // Where it could not be, it goes on.
      this.#givingUp = undefined;
      this.#news.abort();
    }
  }

  async #uninterrupted(command: () => Promise<void>): Promise<void> {
    if (this.#givingUp || !this.#isDriven) throw new HypervisorError('Refused', 'the copy is being given up');
    const done = command();
    // Whoever waits for it does not care how it went.
    this.#underWay = done.catch(() => undefined);
    await done;
  }

  #become(state: CopyPhase): void {
    if (this.#state === state || this.#state === 'failed' || this.#state === 'completed') return;
    this.#state = state;
    this.#context.hooks.onNews();
  }

  #fail(failure: CopyFailure): void {
    if (!this.#isDriven) return;
    this.#failure = this.#givingUp ?? failure;
    this.#become('failed');
    this.#news.abort();
  }

  #tellProgress(): void {
    const nowMs = this.#context.env.clock.now();
    if (nowMs - this.#toldProgressAtMs < PROGRESS_NEWS_MS || !this.#isDriven) return;
    this.#toldProgressAtMs = nowMs;
    this.#context.hooks.onNews();
  }

  /** The last numbers of a copy that is over; nobody waits for them. */
  async #lookBack(): Promise<void> {
    try {
      this.#watch?.consider(sampleOf(await this.#migration.progress(), []));
      this.#watch?.carriedOut();
      this.#context.hooks.onNews();
    } catch (error) {
      // Its machine has done its work, and may be gone.
      this.#context.env.log.debug('a machine that was copied answers no more', { error: errorMessage(error) });
    }
  }

  async #forgetCredentials(): Promise<void> {
    const credentials = this.#credentials;
    this.#credentials = undefined;
    await removeCredentials(this.#context, credentials);
  }
}

/** Hears why a machine ended, until it is to be forgotten: a guest outlives many copies, and must not keep them. */
function onEnded({ ended }: Machine, listener: (message: string) => void): () => void {
  let hear: typeof listener | undefined = listener;
  void ended.then(({ message }) => hear?.(message));
  return () => (hear = undefined);
}
