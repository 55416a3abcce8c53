import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import {
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import { SharedInformers } from '../../kube/shared-informers.ts';
import type { Halves } from './halves.ts';
import type { MoveRequest } from './seen.ts';

/**
 * When both sides are worth another look. What is watched only says that something has changed: caches of several kinds are
 * not of one moment, and what is decided on is read anew. Who may not watch looks from time to time.
 */

/** How often both sides are looked at where nothing is heard of them. */
const LOOK_ANYWAY_MS = 3000;

export interface NewsOptions {
  readonly source: Client;
  readonly target: Client;
  readonly env: Env;
}

export class News {
  readonly #env: Env;
  readonly #ended = new AbortController();
  readonly #following: readonly Promise<void>[];
  #isNew = false;
  #wake = (): void => undefined;

  constructor({ source, target, env }: NewsOptions, { from, to }: Pick<MoveRequest, 'from' | 'to'>, halves: Halves) {
    this.#env = env;
    const sides = [
      { client: source, place: from, half: halves.send },
      { client: target, place: to, half: halves.receive },
    ];
    const informers = sides.flatMap(({ client, place: { namespace, name }, half }) => {
      const shared = new SharedInformers({ client, env });
      const named = (each: string) => ({ namespace, fieldSelector: `metadata.name=${each}` });
      shared.of(virtualMachineInstanceMigrations, {}, named(half));
      shared.of(virtualMachineInstances, {}, named(name));
      shared.of(virtualMachines, {}, named(name));
      return shared.all();
    });
    for (const informer of informers)
      informer.onChange(() => {
        this.#isNew = true;
        this.#wake();
      });
    this.#following = informers.map((informer) => informer.run(this.#ended.signal));
  }

  /** Resolves when something has changed since the last time, or might have. */
  async next(signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    if (!this.#isNew) await sleep(this.#env.clock, LOOK_ANYWAY_MS, AbortSignal.any([signal, woken.signal]));
    this.#isNew = false;
  }

  /** Hears of nothing any more. */
  async end(): Promise<void> {
    this.#ended.abort();
    await Promise.allSettled(this.#following);
  }
}
