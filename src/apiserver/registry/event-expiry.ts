import { errorMessage } from '../../api/error-message.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env, Timer } from '../../env/ports.ts';
import type { Change, Store } from '../storage/store.ts';

/** What events are kept in, of both groups that they have. */
const BUCKET = 'events';
/** As kube-apiserver has it: an hour after it was last written, an event is gone. */
const LIFETIME_MS = 3_600_000;
/** Deletions under way at once. */
const AT_ONCE = 100;

export interface EventExpiryOptions {
  readonly env: Pick<Env, 'clock' | 'log'>;
  readonly store: Pick<Store, 'list' | 'subscribe'>;
  /** Deletes an event that is still as it was at this revision. Rejects with ApiError where it is not. */
  readonly remove: (namespace: string, name: string, resourceVersion: string) => Promise<void>;
}

interface LastWrite {
  readonly revision: number;
  readonly atMs: number;
}

/** Lets events go that nobody has written for a while: there are more every day, and all of them are in memory. */
export class EventExpiry {
  readonly #options: EventExpiryOptions;
  /** By key; who was written last is last. */
  readonly #writes = new Map<string, LastWrite>();
  #timer: Timer | undefined;
  #isSweeping = false;
  #hasEnded = false;

  constructor(options: EventExpiryOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#load();
    const unsubscribe = this.#options.store.subscribe(BUCKET, (change) => this.#onChange(change));
    this.#schedule();
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    unsubscribe();
    this.#hasEnded = true;
    this.#timer?.cancel();
  }

  /** What is there already was written when it says, and never later than now. */
  #load(): void {
    const { store, env } = this.#options;
    const nowMs = env.clock.now();
    const known = store.list(BUCKET).items.map(({ key, revision, text }) => {
      const atMs = Math.min(nowMs, lastSeenMs(JSON.parse(text) as KubeObject) ?? nowMs);
      return { key, write: { revision, atMs } };
    });
    for (const { key, write } of known.toSorted((a, b) => a.write.atMs - b.write.atMs)) this.#writes.set(key, write);
  }

  #onChange({ type, stored }: Change): void {
    this.#writes.delete(stored.key);
    if (type === 'put')
      this.#writes.set(stored.key, { revision: stored.revision, atMs: this.#options.env.clock.now() });
    this.#schedule();
  }

  /** There is a timer only while there is something to wait for. */
  #schedule(): void {
    const [oldest] = this.#writes.values();
    if (this.#timer || this.#isSweeping || this.#hasEnded || !oldest) return;
    const { clock } = this.#options.env;
    const afterMs = Math.max(0, oldest.atMs + LIFETIME_MS - clock.now());
    this.#timer = clock.setTimer(() => void this.#sweep(), afterMs);
  }

  async #sweep(): Promise<void> {
    this.#timer = undefined;
    this.#isSweeping = true;
    await Promise.all(this.#expired().map((each) => this.#expire(...each)));
    this.#isSweeping = false;
    this.#schedule();
  }

  #expired(): [key: string, write: LastWrite][] {
    const beforeMs = this.#options.env.clock.now() - LIFETIME_MS;
    const expired: [string, LastWrite][] = [];
    for (const entry of this.#writes) {
      if (expired.length === AT_ONCE || entry[1].atMs > beforeMs) break;
      expired.push(entry);
    }
    return expired;
  }

  async #expire(key: string, write: LastWrite): Promise<void> {
    const [namespace = '', name = ''] = key.split('/');
    const { env, remove } = this.#options;
    try {
      await remove(namespace, name, String(write.revision));
    } catch (error) {
      // Somebody else has deleted it, or written it again: the store tells.
      const isOther = error instanceof ApiError && (error.code === 404 || error.code === 409);
      if (!isOther) env.log.warn('an event that nobody needs any more stays', { key, error: errorMessage(error) });
    }
    // Finalizers keep it, or a fault does: whoever stays has as long again, and holds up nobody.
    if (this.#writes.get(key) !== write) return;
    this.#writes.delete(key);
    this.#writes.set(key, { ...write, atMs: env.clock.now() });
  }
}

/** When an event was last seen, as it says itself. */
function lastSeenMs(event: KubeObject): number | undefined {
  const { lastTimestamp, eventTime, series, metadata } = event as KubeObject & {
    readonly lastTimestamp?: string | null;
    readonly eventTime?: string | null;
    readonly series?: { readonly lastObservedTime?: string | null } | null;
  };
  const said = [lastTimestamp, eventTime, series?.lastObservedTime, metadata.creationTimestamp]
    .map((time) => Date.parse(time ?? ''))
    .filter((ms) => !Number.isNaN(ms));
  return said.length === 0 ? undefined : Math.max(...said);
}
