import { type CopyState, isPostCopy } from '../../api/copy-state.ts';
import type { Clock } from '../../env/ports.ts';
import { HypervisorError } from '../hypervisor.ts';
import type {
  CopyMethod,
  ListeningPorts,
  ListenOptions,
  MigrationAddress,
  MigrationLimits,
  MigrationProgress,
  Mirror,
  MirrorOptions,
  PortRange,
  SendOptions,
} from '../migration.ts';
import type { HostedModel } from './hosted-model.ts';
import { ModelCopy } from './model-copy.ts';
import { HostedMirrors } from './hosted-mirrors.ts';
import { type ModelLink, type ModelNetwork, onNetwork } from './model-network.ts';

/** How long it takes to connect, and how long the last word of a target is on its way. */
const CONNECT_MS = 5;
const LAST_WORD_MS = 1;

const CANCELLABLE: readonly CopyState[] = ['setup', 'active', 'pre-switchover', 'device'];
const SENDING: readonly CopyState[] = [...CANCELLABLE, 'postcopy-active', 'postcopy-paused', 'postcopy-recover'];

/**
 * The part of a model in a migration, at either side, with what QEMU was seen to do: a source that fails goes on by
 * itself, also when its target has everything already; a target whose source fails it ends; a link that is cut in silence
 * is noticed by nobody; a post-copy whose link breaks stands until it is mended.
 */
export class HostedMigration {
  readonly #model: HostedModel;
  readonly #clock: Clock;
  readonly #network: ModelNetwork;
  readonly #mirrors: HostedMirrors;
  readonly #addresses: MigrationAddress[] = [];
  #disksAddress: MigrationAddress | undefined;
  #state: CopyState = 'none';
  #message: string | undefined;
  #method: CopyMethod | undefined;
  #peer: HostedMigration | undefined;
  #copy: ModelCopy | undefined;
  #link: ModelLink | undefined;
  #isPostCopy = false;
  #hasStoppedGuest = false;
  #stoppedAtMs = 0;
  #downtimeMs: number | undefined;
  #attempt = 0;

  constructor(model: HostedModel, clock: Clock, network: ModelNetwork) {
    this.#model = model;
    this.#clock = clock;
    this.#network = network;
    this.#mirrors = new HostedMirrors(clock, network, () => model.tell({ kind: 'mirror', atMs: clock.now() }));
  }

  /** Whether the guest is neither here nor there, or not here any more. */
  get isUnderWay(): boolean {
    const { state } = this;
    return state === 'pre-switchover' || state === 'device' || (this.#copy !== undefined && isPostCopy(state));
  }

  get state(): CopyState {
    return this.#state;
  }

  /** Whether memory goes from here to another machine, or waits to. */
  get isSending(): boolean {
    return this.#copy !== undefined && SENDING.includes(this.#state);
  }

  ramBytes(): number {
    return this.#model.spec.incoming?.ramBytes ?? this.#model.spec.memoryBytes;
  }

  listen(options: ListenOptions): ListeningPorts {
    checkMethod(options);
    if (this.#model.status !== 'incoming' || this.#state !== 'none') throw refused('it does not wait for a guest');
    const disksPort = options.disks.length === 0 ? undefined : this.#listenOn(options);
    if (disksPort !== undefined) this.#disksAddress = { host: options.host, port: disksPort };
    const memoryPort = this.#listenOn(options);
    this.#method = options;
    this.#become('setup');
    return { memoryPort, disksPort };
  }

  listenAgain(range: PortRange): number {
    if (this.#state !== 'postcopy-paused') throw refused('its post-copy is not paused');
    return this.#listenOn(range);
  }

  closeDisks(): void {
    if (this.#disksAddress) this.#network.forget(this.#disksAddress);
    this.#disksAddress = undefined;
  }

  startMirrors(options: MirrorOptions): void {
    this.#mirrors.start(options, this.#model.guest.traits.diskBytes);
  }

  mirrors(): readonly Mirror[] {
    return this.#mirrors.list();
  }

  finishMirrors(): void {
    if (this.#model.isExecuting) throw refused('its guest writes');
    this.#mirrors.finish();
  }

  dropMirrors(): void {
    this.#mirrors.drop();
  }

  start(options: SendOptions): void {
    checkMethod(options);
    onNetwork(options.target);
    if (!['none', 'failed', 'cancelled', 'completed'].includes(this.#state)) throw refused('it migrates already');
    this.#message = undefined;
    this.#downtimeMs = undefined;
    this.#peer = undefined;
    this.#copy = undefined;
    this.#isPostCopy = false;
    this.#hasStoppedGuest = false;
    this.#method = options;
    const attempt = ++this.#attempt;
    this.#become('setup');
    this.#clock.setTimer(() => {
      if (attempt === this.#attempt && this.#state === 'setup') this.#connect(options);
    }, CONNECT_MS);
  }

  setLimits(limits: Partial<MigrationLimits>): void {
    this.#copy?.setLimits(limits);
  }

  progress(): MigrationProgress {
    const copy = this.#copy;
    return {
      state: this.#state,
      message: this.#message,
      memory: copy?.progress(this.#state),
      downtimeMs: this.#downtimeMs ?? copy?.expectedDowntimeMs(),
      totalMs: copy?.totalMs() ?? 0,
      throttlePercent: copy?.throttlePercent ?? 0,
    };
  }

  switchOver(): void {
    const [peer, copy] = [this.#peer, this.#copy];
    if (this.#state !== 'pre-switchover' || !copy) throw refused('it does not wait to be told');
    if (!peer) return this.#fail('the target is gone');
    if (this.#isPostCopy) {
      this.#become('postcopy-active');
      peer.#receive(this.#model, 'postcopy-active');
    } else this.#become('device');
    copy.sendRest();
  }

  cancel(): void {
    if (isPostCopy(this.#state)) throw refused('the guest has gone over already: its memory has to follow');
    if (!this.#copy && this.#state !== 'setup') return;
    if (!CANCELLABLE.includes(this.#state)) return;
    this.#become('cancelling');
    this.#giveUp('cancelled', undefined);
  }

  startPostCopy(): void {
    if (this.#state !== 'active' || !this.#copy || !this.#method?.allowsPostCopy)
      throw refused('it cannot be post-copy');
    this.#isPostCopy = true;
    this.#copy.hold();
    this.#stopGuest();
  }

  pausePostCopy(): void {
    if (this.#state !== 'postcopy-active' && this.#state !== 'postcopy-recover')
      throw refused('it is not in post-copy');
    this.#breakPostCopy();
  }

  resumePostCopy(address: MigrationAddress): void {
    const peer = this.#network.listener(address);
    if (this.#state !== 'postcopy-paused' || !this.#copy) throw refused('its post-copy is not paused');
    this.#become('postcopy-recover');
    if (!peer || peer !== this.#peer || this.#network.link(address.host).state !== 'up')
      return this.#become('postcopy-paused');
    this.#become('postcopy-active');
    peer.#mended();
    this.#copy.resume();
  }

  /** Its machine is gone; whoever is at the other end hears of it, unless its whole host is gone. */
  over(isHostGone: boolean): void {
    for (const address of this.#addresses) this.#network.forget(address);
    const peer = this.#peer;
    this.#peer = undefined;
    this.#attempt++;
    this.#mirrors.drop();
    if (this.#copy) this.#copy.end();
    if (!peer) return;
    peer.#peer = undefined;
    if (!isHostGone) peer.#peerIsGone();
    else peer.#copy?.hold();
  }

  #listenOn({ host, firstPort, lastPort }: PortRange): number {
    for (let port = firstPort; port <= lastPort; port++) {
      if (!this.#network.listen({ host, port }, this)) continue;
      this.#addresses.push({ host, port });
      return port;
    }
    throw refused(`no port from ${firstPort} to ${lastPort} is free at ${host}`);
  }

  #connect(options: SendOptions): void {
    const { limits, allowsAutoConverge } = options;
    const target = onNetwork(options.target);
    const link = this.#network.link(target.host);
    this.#link = link;
    if (link.state === 'silent') return;
    const peer = link.state === 'up' ? this.#network.listener(target) : undefined;
    if (!peer) return this.#fail(`cannot connect to ${target.host}:${target.port}: connection refused`);
    if (peer.#state !== 'setup' || !knowEachOther(options, peer.#method)) return this.#fail('the target hung up');
    if (peer.ramBytes() !== this.ramBytes()) {
      peer.#loadFails('its RAM has another size');
      return this.#fail('the target has RAM of another size');
    }
    this.#peer = peer;
    peer.#peer = this;
    this.#copy = new ModelCopy({
      clock: this.#clock,
      guest: this.#model.guest,
      link,
      limits,
      allowsAutoConverge,
      onPass: (pass) => this.#model.tell({ kind: 'migration-pass', pass, atMs: this.#clock.now() }),
      onCaughtUp: () => this.#stopGuest(),
      onSent: () => this.#sent(),
      onCut: () => this.#cut(),
    });
    this.#become('active');
    peer.#become('active');
    this.#copy.start();
  }

  #stopGuest(): void {
    this.#stoppedAtMs = this.#clock.now();
    this.#hasStoppedGuest = this.#model.status === 'running';
    this.#model.stop();
    this.#become('pre-switchover');
  }

  /** The target has everything; the source learns of it a moment later, if at all. */
  #sent(): void {
    const peer = this.#peer;
    if (!peer) return this.#fail('the target is gone');
    // Its word may have been lost on the way, and is said again once the link is mended.
    if (peer.#state !== 'completed') {
      if (this.#state === 'device') peer.#receive(this.#model, 'completed');
      else peer.#become('completed');
    }
    const attempt = this.#attempt;
    this.#clock.setTimer(() => {
      if (
        this.#link?.state !== 'up' ||
        attempt !== this.#attempt ||
        (this.#state !== 'device' && this.#state !== 'postcopy-active')
      )
        return;
      this.#copy?.end();
      this.#downtimeMs = this.#clock.now() - this.#stoppedAtMs;
      this.#peer = undefined;
      peer.#peer = undefined;
      this.#model.finishMigrate();
      this.#become('completed');
    }, LAST_WORD_MS);
  }

  /** A target has the guest, which does not run yet. */
  #receive(source: HostedModel, state: CopyState): void {
    this.#model.arrive(source.guest);
    this.#become(state);
  }

  #cut(): void {
    if (this.#isPostCopy && isPostCopy(this.#state)) {
      const peer = this.#peer;
      if (peer) peer.#breakPostCopy();
      return this.#breakPostCopy();
    }
    this.#fail('the link to the target broke');
  }

  #breakPostCopy(): void {
    if (!isPostCopy(this.#state) || this.#state === 'postcopy-paused') return;
    this.#copy?.hold();
    // A guest whose memory does not come stands, though its machine says that it runs.
    if (!this.#copy) this.#model.starve();
    this.#become('postcopy-paused');
  }

  #mended(): void {
    this.#become('postcopy-recover');
    this.#become('postcopy-active');
    this.#model.feed();
  }

  #peerIsGone(): void {
    if (isPostCopy(this.#state)) return this.#breakPostCopy();
    if (this.#copy) return this.#fail('the target is gone');
    if (this.#state !== 'completed') this.#loadFails('the source is gone');
  }

  #loadFails(why: string): void {
    this.#model.over({ reason: 'Failed', message: `the model of a machine could not take a guest: ${why}`, log: [] });
  }

  #fail(message: string): void {
    this.#giveUp('failed', message);
  }

  #giveUp(state: 'failed' | 'cancelled', message: string | undefined): void {
    this.#attempt++;
    this.#message = message;
    this.#copy?.end();
    const peer = this.#peer;
    this.#peer = undefined;
    if (peer) {
      peer.#peer = undefined;
      if (this.#link?.state !== 'silent') peer.#peerIsGone();
    }
    this.#become(state);
    // A failed post-copy leaves its guest to whoever asked for it.
    if (this.#hasStoppedGuest && !(this.#isPostCopy && state === 'failed')) this.#model.continue();
  }

  #become(state: CopyState): void {
    if (this.#model.end) return;
    this.#state = state;
    this.#model.tell({ kind: 'migration', state, atMs: this.#clock.now() });
  }
}

function refused(why: string): HypervisorError {
  return new HypervisorError('Refused', `the model of a machine refuses: ${why}`);
}

function checkMethod({ allowsPostCopy, channels }: CopyMethod): void {
  if (allowsPostCopy && channels) throw refused('post-copy goes over one channel');
}

/** Whether two sides agree, and each is whom the other expects; names in certificates are those of no model. */
function knowEachOther(source: CopyMethod, target: CopyMethod | undefined): boolean {
  return (
    target !== undefined &&
    (source.tls === undefined) === (target.tls === undefined) &&
    (source.channels === undefined) === (target.channels === undefined) &&
    source.allowsPostCopy === target.allowsPostCopy
  );
}
