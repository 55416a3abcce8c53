import { type ManualClock, seededRandom, silentLogger } from '../../env/test.ts';
import type { Random } from '../../env/ports.ts';
import { turn } from '../../env/turn.ts';
import {
  type Channel,
  type ChannelListener,
  type OfferedHalf,
  type ReceivedHalf,
  Refusal,
  type Role,
  type SyncError,
} from '../channel.ts';
import type { VersionRange } from './frame.ts';
import type { FixtureNetwork } from './network.fixture.ts';
import type { StreamMetrics } from './stream-metrics.ts';
import { Switchboard } from './switchboard.ts';

/** For tests: what the tests offer as halves. */
export interface NumberedHalf {
  readonly version: number;
  readonly [field: string]: unknown;
}

export interface ClusterOptions {
  readonly clock: ManualClock;
  readonly network: FixtureNetwork;
  readonly seed: number;
  readonly versions?: VersionRange;
  /** How long a half takes until it is durable. */
  readonly takeMsMax?: number;
  /** How likely a half is refused at first. */
  readonly refusalChance?: number;
  readonly metrics?: StreamMetrics;
}

/**
 * For tests: one cluster as its synchronization controller would be. What it has made durable survives `restart`; what
 * it wants to tell others is offered again after one, as a controller does that reads its objects anew.
 */
export class FixtureCluster implements ChannelListener {
  readonly id: string;
  readonly log: string[] = [];
  /** `peer/role/key` → the newest half that was made durable; undefined: gone. */
  readonly durable = new Map<string, NumberedHalf | undefined>();
  /** What peers have acknowledged, by the same names; of the newest. */
  readonly acknowledgements = new Map<string, number>();
  readonly refusals: { readonly key: string; readonly refusal: Refusal }[] = [];
  /** What was refused by this cluster. */
  readonly unwanted = new Map<string, Refusal>();
  /** What breaks a promise that the channel makes. */
  readonly wrong: string[] = [];
  readonly channels = new Map<string, Channel>();
  readonly bundles = new Map<string, string>();
  switchboard: Switchboard;
  /** Called when a peer has acknowledged something. */
  onAcknowledged: (peer: string, update: OfferedHalf) => void = () => undefined;
  readonly #options: ClusterOptions;
  readonly #random: Random;
  readonly #offers = new Map<string, { peer: string; update: OfferedHalf }>();
  readonly #urls = new Set<string>();
  #incarnation = 0;

  constructor(id: string, options: ClusterOptions) {
    this.id = id;
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.switchboard = this.#start();
  }

  #start(): Switchboard {
    const { clock, network, versions, metrics } = this.#options;
    const incarnation = ++this.#incarnation;
    const listener = this.#whileAlive(incarnation);
    const board = new Switchboard({
      env: { clock, random: this.#random, log: silentLogger },
      network: network.of(this.id),
      listener,
      clusterId: this.id,
      incarnation: `${this.id}-${incarnation}`,
      bundle: () => `bundle of ${this.id} ${incarnation}`,
      renewed: (peer, bundle) => void this.bundles.set(peer, bundle),
      ...(versions ? { versions } : {}),
      metrics,
    });
    network.listen(this.id, board);
    return board;
  }

  /** A process that was killed hears nothing any more. */
  #whileAlive(incarnation: number): ChannelListener {
    const alive = (): boolean => incarnation === this.#incarnation;
    return {
      received: (peer, update) => (alive() ? this.received(peer, update) : new Promise(() => undefined)),
      acknowledged: (peer, update) => alive() && this.acknowledged(peer, update),
      refused: (peer, update, refusal) => alive() && this.refused(peer, update, refusal),
      opened: (channel) => alive() && this.opened(channel),
      closed: (peer, error) => alive() && this.closed(peer, error),
      reached: (url, channel) => alive() && this.reached(url, channel),
      unreachable: (url, error) => alive() && this.unreachable(url, error),
    };
  }

  /** Kills the process, and starts another one. */
  restart(): void {
    this.#options.network.kill(this.id);
    this.channels.clear();
    const before = this.switchboard;
    this.switchboard = this.#start();
    before.stop();
    for (const url of this.#urls) this.switchboard.dial(url);
  }

  dial(url: string): void {
    this.#urls.add(url);
    this.switchboard.dial(url);
  }

  hangUp(url: string): void {
    this.#urls.delete(url);
    this.switchboard.hangUp(url);
  }

  offer(peer: string, key: string, role: Role, half: NumberedHalf | undefined): void {
    const update = { key, role, half };
    this.#offers.set(`${peer}/${role}/${key}`, { peer, update });
    this.channels.get(peer)?.offer(update);
  }

  async received(peer: string, { key, role, half }: ReceivedHalf): Promise<void> {
    const name = `${peer}/${role}/${key}`;
    const incarnation = this.#incarnation;
    const refusal = this.unwanted.get(key);
    if (refusal) throw refusal;
    const takeMs = this.#random.number() * (this.#options.takeMsMax ?? 0);
    if (takeMs > 0) await new Promise<void>((resolve) => void this.#options.clock.setTimer(resolve, takeMs));
    // A process that was killed meanwhile has written nothing.
    if (incarnation !== this.#incarnation) return new Promise(() => undefined);
    const [before, after] = [this.durable.get(name)?.version ?? 0, (half as NumberedHalf | undefined)?.version];
    if (after !== undefined && after < before) this.wrong.push(`${name}: ${after} came after ${before}`);
    if (this.#random.number() < (this.#options.refusalChance ?? 0)) throw new Refusal('Busy', 'not now');
    this.durable.set(name, half as NumberedHalf | undefined);
    this.log.push(`received ${name} ${after ?? 'gone'}`);
  }

  acknowledged(peer: string, update: OfferedHalf): void {
    const version = (update.half as NumberedHalf | undefined)?.version;
    this.acknowledgements.set(`${peer}/${update.role}/${update.key}`, version ?? Number.POSITIVE_INFINITY);
    this.log.push(`acknowledged ${update.key} ${version ?? 'gone'}`);
    this.onAcknowledged(peer, update);
  }

  refused(peer: string, { key, role }: OfferedHalf, refusal: Refusal): void {
    this.refusals.push({ key, refusal });
    // A controller tries again what may go well another time.
    if (refusal.reason === 'Busy')
      this.#options.clock.setTimer(() => {
        const newest = this.#offers.get(`${peer}/${role}/${key}`);
        if (newest) this.channels.get(peer)?.offer(newest.update);
      }, 300);
    this.log.push(`refused ${key} ${refusal.reason}`);
  }

  opened(channel: Channel): void {
    this.log.push(`opened ${channel.peer}`);
    const isNew = this.channels.get(channel.peer) !== channel;
    this.channels.set(channel.peer, channel);
    if (!isNew) return;
    for (const { peer, update } of this.#offers.values()) if (peer === channel.peer) channel.offer(update);
  }

  closed(peer: string, error: SyncError): void {
    this.log.push(`closed ${peer} ${error.code}`);
  }

  reached(url: string, channel: Channel): void {
    this.log.push(`reached ${url} ${channel.peer}`);
  }

  unreachable(url: string, error: SyncError): void {
    this.log.push(`unreachable ${url} ${error.code}`);
  }
}

/** Lets time pass, and everything that can happen in it happen. */
export async function pass(clock: ManualClock, ms: number, stepMs = 20): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    clock.advance(stepMs);
    await turn();
  }
}
