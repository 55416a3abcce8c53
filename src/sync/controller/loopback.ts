import { errorMessage } from '../../api/error-message.ts';
import type { Logger } from '../../env/ports.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { type Channel, type ChannelListener, type OfferedHalf, Refusal, type Role } from '../channel.ts';

type LoopbackListener = Pick<ChannelListener, 'received' | 'acknowledged' | 'refused'>;

/**
 * The channel to ourselves, for pairs whose halves are both in this cluster: the same promises as those of a stream, and
 * nothing in between. What is offered is heard in a later turn, so that nobody is called back by what it calls.
 */
export class Loopback implements Channel {
  readonly peer: string;
  readonly isOpen = true;
  readonly #listener: LoopbackListener;
  readonly #log: Pick<Logger, 'error'>;
  readonly #offers = new Map<string, OfferedHalf>();

  constructor(clusterId: string, listener: LoopbackListener, log: Pick<Logger, 'error'>) {
    this.peer = clusterId;
    this.#listener = listener;
    this.#log = log;
  }

  offer(update: OfferedHalf): void {
    const id = idOf(update.key, update.role);
    if (isSame(this.#offers.get(id), update)) return;
    this.#offers.set(id, update);
    // It settles every failure itself.
    void this.#deliver(id, update);
  }

  withdraw(key: string, role: Role): void {
    this.#offers.delete(idOf(key, role));
  }

  async #deliver(id: string, update: OfferedHalf): Promise<void> {
    const isNewest = (): boolean => this.#offers.get(id) === update;
    await Promise.resolve();
    if (!isNewest()) return;
    const refusal = await this.#refusalOf(update);
    if (!isNewest()) return;
    if (!refusal) return this.#listener.acknowledged(this.peer, update);
    // Were it offered again, it would be sent again.
    this.#offers.delete(id);
    this.#listener.refused(this.peer, update, refusal);
  }

  async #refusalOf(update: OfferedHalf): Promise<Refusal | undefined> {
    try {
      await this.#listener.received(this.peer, update);
      return undefined;
    } catch (error) {
      if (error instanceof Refusal) return error;
      this.#log.error('a half of this cluster could not be taken', { reason: errorMessage(error) });
      return new Refusal('InternalError', 'this cluster could not take it');
    }
  }
}

function idOf(key: string, role: Role): string {
  return `${role} ${key}`;
}

function isSame(before: OfferedHalf | undefined, next: OfferedHalf): boolean {
  return before !== undefined && deepEqual(before.half, next.half);
}
