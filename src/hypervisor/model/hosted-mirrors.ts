import type { Clock, Timer } from '../../env/ports.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { Mirror, MirrorOptions } from '../migration.ts';
import { type LinkUser, type ModelLink, type ModelNetwork, onNetwork } from './model-network.ts';

/** Copies of disks that are nothing but the time since they began. */
export class HostedMirrors implements LinkUser {
  readonly #clock: Clock;
  readonly #network: ModelNetwork;
  readonly #onNews: () => void;
  #options: MirrorOptions | undefined;
  #link: ModelLink | undefined;
  #totalBytes = 0;
  #copiedBytes = 0;
  #sinceMs = 0;
  #bytesPerSecond = 0;
  #failure: string | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock, network: ModelNetwork, onNews: () => void) {
    this.#clock = clock;
    this.#network = network;
    this.#onNews = onNews;
  }

  /** Begins to copy disks, each of so many bytes, one beside the other. */
  start(options: MirrorOptions, diskBytes: number): void {
    const { disks } = options;
    const target = onNetwork(options.target);
    if (this.#options) throw new HypervisorError('Refused', 'the model of a machine copies its disks already');
    const link = this.#network.link(target.host);
    if (link.state !== 'up' || !this.#network.listener(target))
      throw new HypervisorError('Refused', `nobody serves disks at ${target.host}:${target.port}`);
    [this.#options, this.#link, this.#failure] = [options, link, undefined];
    [this.#totalBytes, this.#copiedBytes] = [diskBytes * disks.length, 0];
    link.use(this);
  }

  list(): readonly Mirror[] {
    this.#account();
    const { disks = [], target } = this.#options ?? {};
    if (target && !this.#failure && !this.#network.listener(onNetwork(target))) this.#fail('the target is gone');
    const state = this.#failure ? 'failed' : this.#copiedBytes >= this.#totalBytes ? 'whole' : 'copying';
    return disks.map((place) => {
      return {
        place,
        state,
        copiedBytes: Math.floor(this.#copiedBytes / disks.length),
        totalBytes: this.#totalBytes / disks.length,
        message: this.#failure,
      };
    });
  }

  finish(): void {
    const wrong = this.list().find(({ state }) => state !== 'whole');
    if (wrong)
      throw new HypervisorError('Refused', `a disk is not whole at the target: ${wrong.message ?? wrong.state}`);
    this.drop();
  }

  drop(): void {
    this.#timer?.cancel();
    this.#options = undefined;
    this.#link?.leave(this);
    this.#link = undefined;
  }

  linkChanged(): void {
    this.#account();
    this.#timer?.cancel();
    const link = this.#link;
    const { bandwidthBytesPerSecond: limit = 0 } = this.#options ?? {};
    this.#bytesPerSecond = 0;
    if (!link || this.#failure !== undefined) return;
    if (link.state === 'cut') return this.#fail('the link to the target broke');
    if (link.state === 'silent' || this.#copiedBytes >= this.#totalBytes) return;
    this.#bytesPerSecond = limit === 0 ? link.bytesPerSecond : Math.min(link.bytesPerSecond, limit);
    const durationMs = (1000 * (this.#totalBytes - this.#copiedBytes)) / this.#bytesPerSecond;
    this.#timer = this.#clock.setTimer(() => {
      this.#copiedBytes = this.#totalBytes;
      this.#bytesPerSecond = 0;
      this.#onNews();
    }, durationMs);
  }

  #fail(why: string): void {
    this.#failure = why;
    this.#timer?.cancel();
    this.#bytesPerSecond = 0;
    this.#link?.users.delete(this);
    this.#onNews();
  }

  #account(): void {
    const nowMs = this.#clock.now();
    const copied = (this.#bytesPerSecond * (nowMs - this.#sinceMs)) / 1000;
    this.#copiedBytes = Math.min(this.#totalBytes, this.#copiedBytes + copied);
    this.#sinceMs = nowMs;
  }
}
