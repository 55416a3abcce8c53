import type { Clock } from '../../src/env/ports.ts';
import type { Hypervisor, Machine } from '../../src/hypervisor/hypervisor.ts';
import type { Transport, TransportResponse } from '../../src/kube/transport.ts';

/**
 * One life of an agent, which can end at any boundary between it and the world: before something that it asks for is
 * done, or after that, before it hears of it. From then on nothing that it asks for happens, and it hears nothing.
 */
export class Life {
  /** How many boundaries were passed. */
  count = 0;
  isOver = false;
  /** Paths that the server says it knows nothing of. */
  unknownPaths: RegExp | undefined;
  #endsAt = Number.POSITIVE_INFINITY;

  /** It ends at the n-th boundary from now on. */
  endsAfter(boundaries: number): void {
    this.#endsAt = this.count + boundaries;
  }

  end(): void {
    this.isOver = true;
  }

  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      setTimer: (callback, delayMs) => clock.setTimer(() => void (this.isOver || callback()), delayMs),
    };
  }

  transport(inner: Transport, onWrite: (write: string) => void): Transport {
    return {
      send: (request) =>
        this.#cross(() => {
          const what = `${request.method} ${request.path.replace(/\?.*/, '')}`;
          if (request.method !== 'GET' && !what.includes('/events')) onWrite(what);
          if (this.unknownPaths?.test(request.path) === true) return unknownPath();
          return inner.send(request);
        }),
      close: () => inner.close(),
    };
  }

  /** A port whose methods answer promises, but for those that are named. */
  port<T extends object>(inner: T, plain: readonly (keyof T)[] = []): T {
    return new Proxy(inner, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function' || plain.includes(name as keyof T)) {
          return typeof value === 'function' ? value.bind(target) : value;
        }
        return (...args: unknown[]) => this.#cross(() => value.apply(target, args) as Promise<unknown>);
      },
    });
  }

  hypervisor(inner: Hypervisor): Hypervisor {
    const machine = (each: Machine): Machine => this.port(each, ['onEvent', 'detach', 'run', 'ended']);
    return {
      start: async (spec, run) => machine(await this.#cross(() => inner.start(spec, run))),
      adopt: async (run) => {
        const found = await this.#cross(() => inner.adopt(run));
        return found && machine(found);
      },
    };
  }

  async #cross<T>(act: () => Promise<T>): Promise<T> {
    this.#step();
    if (this.isOver) return never();
    try {
      return await act();
    } finally {
      this.#step();
      if (this.isOver) await never();
    }
  }

  #step(): void {
    this.count++;
    if (this.count >= this.#endsAt) this.isOver = true;
  }
}

async function unknownPath(): Promise<TransportResponse> {
  async function* body(): AsyncGenerator<string> {
    yield '404 page not found';
  }
  return { status: 404, headers: {}, body: body() };
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
