import type { Client } from '../kube/client.ts';
import type { LocalIdentity } from '../kube/in-process-transport.ts';
import { errorText } from '../kube/error-text.ts';
import type { SimulatedProcess } from './process.ts';
import type { World } from './world.ts';

/** What runs in a process: it is given one, and runs until the process is killed or it fails. */
export type Program = (process: SimulatedProcess, clientOf: (identity: LocalIdentity) => Client) => Promise<void>;

export interface ComponentOptions {
  readonly world: World;
  readonly name: string;
  readonly program: Program;
  /** Whether it may crash at its writes. */
  readonly canCrash: boolean;
  /** What to do about a program that ends by itself; undefined where that is to be expected. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

const DOWN_MS_MAX = 30_000;

/**
 * Something that always runs, one life after another: when its process is killed, or ends by itself, another one is
 * started after a while, which knows nothing of the first.
 */
export class Component {
  readonly name: string;
  readonly #options: ComponentOptions;
  #process: SimulatedProcess | undefined;
  #lives = 0;
  #isStopped = false;

  constructor(options: ComponentOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get process(): SimulatedProcess | undefined {
    return this.#process;
  }

  start(): void {
    const { world, name, program, canCrash, onFailure } = this.#options;
    this.#isStopped = false;
    const life = ++this.#lives;
    const process = world.newProcess({ name, life, canCrash, onCrash: () => this.kill('at a write') });
    this.#process = process;
    world.trace.add(name, `starts (life ${life})`);
    program(process, (identity) => world.clientOf(process, identity)).then(
      () => this.#ended(process, 'ended'),
      (error: unknown) => {
        onFailure?.(error);
        this.#ended(process, `failed: ${errorText(error)}`);
      },
    );
  }

  /** Ends it where it stands. It comes back after a while. */
  kill(why: string): void {
    const process = this.#process;
    if (!process) return;
    process.kill();
    this.#ended(process, `is killed ${why}`);
  }

  /** Ends it where it stands, until it is started again. */
  stop(): void {
    this.#isStopped = true;
    this.kill('for good');
  }

  #ended(process: SimulatedProcess, what: string): void {
    if (this.#process !== process) return;
    const { world, name } = this.#options;
    this.#process = undefined;
    process.kill();
    world.trace.add(name, what);
    if (this.#isStopped) return;
    const downMs = world.random.number() ** 2 * DOWN_MS_MAX;
    world.clock.setTimer(() => {
      if (!this.#process && !this.#isStopped) this.start();
    }, downMs);
  }
}
