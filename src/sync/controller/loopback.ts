import { deepEqual } from '../../machinery/equal.ts';
import { type Channel, type ChannelListener, type OfferedHalf, Refusal, type Role } from '../channel.ts';

/**
 * The channel to ourselves, for pairs whose halves are both in this cluster: the same promises as those of a stream, and
 * nothing in between. What is offered is heard in a later turn, so that nobody is called back by what it calls.
 */
export class Loopback implements Channel {
  readonly peer: string;
  readonly isOpen = true;
  readonly #listener: Pick<ChannelListener, 'received' | 'acknowledged' | 'refused'>;
  readonly #offers = new Map<string, OfferedHalf>();

  constructor(clusterId: string, listener: Pick<ChannelListener, 'received' | 'acknowledged' | 'refused'>) {
    this.peer = clusterId;
    this.#listener = listener;
  }

  offer(update: OfferedHalf): void {
    const id = idOf(update.key, update.role);
    if (isSame(this.#offers.get(id), update)) return;
    this.#offers.set(id, update);
    void this.#deliver(id, update);
  }

  withdraw(key: string, role: Role): void {
    this.#offers.delete(idOf(key, role));
  }

  async #deliver(id: string, update: OfferedHalf): Promise<void> {
    const isNewest = (): boolean => this.#offers.get(id) === update;
    await Promise.resolve();
    if (!isNewest()) return;
    try {
      await this.#listener.received(this.peer, update);
      if (isNewest()) this.#listener.acknowledged(this.peer, update);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (isNewest()) this.#listener.refused(this.peer, update, error);
    }
  }
}

function idOf(key: string, role: Role): string {
  return `${role} ${key}`;
}

function isSame(before: OfferedHalf | undefined, next: OfferedHalf): boolean {
  return before !== undefined && deepEqual(before.half, next.half);
}
