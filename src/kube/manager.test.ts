import { describe, expect, it } from 'vitest';
import { testEnv } from '../env/test.ts';
import { Controller } from './controller.ts';
import { LeadershipLostError } from './leader-election.ts';
import { Manager, type ManagerOptions, StopTimeoutError } from './manager.ts';
import type { Service } from './service.ts';
import { ServiceError } from './service-group.ts';

async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

/** A service that tells what happens to it, and ends, syncs and fails when it is told to. */
class FakeService implements Service {
  readonly name: string;
  readonly synced?: Promise<void>;
  readonly needsLeadership?: boolean;
  readonly #log: string[];
  readonly #endsAtOnce: boolean;
  sync: () => void = () => undefined;
  end: () => void = () => undefined;
  fail: (error: unknown) => void = () => undefined;

  constructor(
    log: string[],
    name: string,
    options: { hasToSync?: boolean; needsLeadership?: boolean; endsAtOnce?: boolean } = {},
  ) {
    this.name = name;
    this.#log = log;
    this.#endsAtOnce = options.endsAtOnce ?? true;
    if (options.needsLeadership !== undefined) this.needsLeadership = options.needsLeadership;
    if (options.hasToSync) this.synced = new Promise((resolve) => (this.sync = resolve));
  }

  run(signal: AbortSignal): Promise<void> {
    this.#log.push(`${this.name} starts`);
    return new Promise((resolve, reject) => {
      this.end = () => {
        this.#log.push(`${this.name} ended`);
        resolve();
      };
      this.fail = reject;
      signal.addEventListener('abort', () => {
        this.#log.push(`${this.name} stops`);
        if (this.#endsAtOnce) this.end();
      });
    });
  }
}

/** An elector that does what the test says. */
class FakeElector {
  readonly #log: string[];
  win: () => void = () => undefined;
  lose: () => void = () => undefined;

  constructor(log: string[]) {
    this.#log = log;
  }

  async lead(signal: AbortSignal, work: (leadership: AbortSignal) => Promise<void>): Promise<void> {
    this.#log.push('stands');
    await new Promise<void>((resolve) => {
      this.win = resolve;
      signal.addEventListener('abort', () => resolve());
    });
    if (signal.aborted) return;
    const leadership = new AbortController();
    signal.addEventListener('abort', () => leadership.abort(signal.reason));
    let lost: LeadershipLostError | undefined;
    this.lose = () => {
      lost = new LeadershipLostError('lost');
      leadership.abort(lost);
    };
    await work(leadership.signal);
    this.#log.push(lost ? 'lease lost' : 'lease released');
    if (lost) throw lost;
  }
}

function managed(options: Partial<ManagerOptions> = {}) {
  const env = testEnv();
  const log: string[] = [];
  const manager = new Manager({ env, ...options });
  const stop = new AbortController();
  const run = (): { outcome: () => unknown; ended: Promise<unknown> } => {
    let outcome: unknown = 'running';
    const ended = manager.run(stop.signal).then(
      () => (outcome = 'ended'),
      (error: unknown) => (outcome = error),
    );
    return { outcome: () => outcome, ended };
  };
  return { manager, log, clock: env.clock, stop, run };
}

describe('a manager', () => {
  it('starts what has to sync first, then the rest, and stops the other way round', async () => {
    const { manager, log, stop, run } = managed();
    const informers = ['informer 1', 'informer 2'].map((name) => new FakeService(log, name, { hasToSync: true }));
    const recorder = new FakeService(log, 'recorder', { needsLeadership: false });
    const controllers = ['controller 1', 'controller 2'].map((name) => new FakeService(log, name));
    manager.add(...controllers).add(...informers, recorder);
    let isSynced = false;
    void manager.synced.then(() => (isSynced = true));
    const { ended } = run();
    await settle();
    expect(log.splice(0)).toEqual(['informer 1 starts', 'informer 2 starts', 'recorder starts']);
    informers[0]?.sync();
    await settle();
    expect([log, isSynced]).toEqual([[], false]);
    informers[1]?.sync();
    await settle();
    expect(isSynced).toBe(true);
    expect(log.splice(0)).toEqual(['controller 1 starts', 'controller 2 starts']);
    stop.abort();
    expect(await ended).toBe('ended');
    expect(log).toEqual([
      'controller 2 stops',
      'controller 2 ended',
      'controller 1 stops',
      'controller 1 ended',
      'recorder stops',
      'recorder ended',
      'informer 2 stops',
      'informer 2 ended',
      'informer 1 stops',
      'informer 1 ended',
    ]);
  });

  it('waits for the controllers to end before it stops what they need', async () => {
    const { manager, log, stop, run } = managed();
    const controller = new FakeService(log, 'controller', { endsAtOnce: false });
    manager.add(new FakeService(log, 'recorder', { needsLeadership: false }), controller);
    const { ended } = run();
    await settle();
    stop.abort();
    await settle();
    expect(log.slice(2)).toEqual(['controller stops']);
    controller.end();
    await ended;
    expect(log.slice(2)).toEqual(['controller stops', 'controller ended', 'recorder stops', 'recorder ended']);
  });

  it('starts controllers only as the leader, and gives the lease back when they have ended', async () => {
    const log: string[] = [];
    const elector = new FakeElector(log);
    const { manager, stop, run } = managed({ elector });
    const controller = new FakeService(log, 'controller', { endsAtOnce: false });
    manager.add(new FakeService(log, 'recorder', { needsLeadership: false }), controller);
    const { ended } = run();
    await settle();
    expect(log).toEqual(['recorder starts', 'stands']);
    elector.win();
    await settle();
    expect(log.slice(2)).toEqual(['controller starts']);
    stop.abort();
    await settle();
    controller.end();
    expect(await ended).toBe('ended');
    expect(log.slice(3)).toEqual([
      'controller stops',
      'controller ended',
      'lease released',
      'recorder stops',
      'recorder ended',
    ]);
  });

  it('can be stopped before it leads, and before anything has synced', async () => {
    for (const hasToSync of [true, false]) {
      const log: string[] = [];
      const { manager, stop, run } = managed({ elector: new FakeElector(log) });
      manager.add(
        new FakeService(log, 'informer', { hasToSync, needsLeadership: false }),
        new FakeService(log, 'controller'),
      );
      const { ended } = run();
      await settle();
      stop.abort();
      expect(await ended).toBe('ended');
      expect(log).not.toContain('controller starts');
      expect(log.at(-1)).toBe('informer ended');
    }
  });

  it('tells controllers to end in the very moment in which leadership is lost, and fails', async () => {
    const log: string[] = [];
    const elector = new FakeElector(log);
    const { manager, run } = managed({ elector });
    manager.add(new FakeService(log, 'recorder', { needsLeadership: false }), new FakeService(log, 'controller'));
    const { ended } = run();
    await settle();
    elector.win();
    await settle();
    elector.lose();
    expect(log.slice(3)).toEqual(['controller stops', 'controller ended']);
    expect(await ended).toBeInstanceOf(LeadershipLostError);
    expect(log.slice(5)).toEqual(['lease lost', 'recorder stops', 'recorder ended']);
  });

  it('does not wait for ever for controllers that go on without leadership', async () => {
    const log: string[] = [];
    const elector = new FakeElector(log);
    const { manager, run, clock } = managed({ elector });
    manager.add(new FakeService(log, 'controller', { endsAtOnce: false }));
    const { ended } = run();
    await settle();
    elector.win();
    await settle();
    elector.lose();
    clock.advance(30_000);
    const error = (await ended) as StopTimeoutError;
    expect(error).toBeInstanceOf(StopTimeoutError);
    expect(error.cause).toBeInstanceOf(LeadershipLostError);
    expect(log).not.toContain('lease released');
  });

  it('stops everything with the cause when a service fails', async () => {
    const { manager, log, run } = managed();
    const [informer, first, second] = [
      new FakeService(log, 'informer', { hasToSync: true }),
      new FakeService(log, 'first'),
      new FakeService(log, 'second'),
    ];
    manager.add(informer, first, second);
    const { ended } = run();
    informer.sync();
    await settle();
    const cause = new Error('disk full');
    first.fail(cause);
    const error = (await ended) as ServiceError;
    expect(error).toBeInstanceOf(ServiceError);
    expect(error.message).toBe('first failed: Error: disk full');
    expect(error.cause).toBe(cause);
    expect(log.slice(3)).toEqual([
      'second stops',
      'second ended',
      'first stops',
      'first ended',
      'informer stops',
      'informer ended',
    ]);
  });

  it('stops when a service fails before all has synced', async () => {
    const { manager, log, run } = managed();
    const informer = new FakeService(log, 'informer', { hasToSync: true });
    manager.add(informer, new FakeService(log, 'controller'));
    const { ended } = run();
    await settle();
    informer.fail('no');
    expect(String(await ended)).toBe('ServiceError: informer failed: no');
    expect(log).not.toContain('controller starts');
  });

  it('takes it for a failure when a service ends by itself', async () => {
    const { manager, log, run } = managed();
    const controller = new FakeService(log, 'controller');
    manager.add(controller);
    const { ended } = run();
    await settle();
    controller.end();
    expect(String(await ended)).toBe('ServiceError: controller ended by itself');
  });

  it('survives a service that throws instead of rejecting', async () => {
    const { manager, run } = managed();
    manager.add({
      name: 'hasty',
      run: () => {
        throw new Error('at once');
      },
    });
    expect(String(await run().ended)).toBe('ServiceError: hasty failed: Error: at once');
  });

  it('keeps the first cause when others fail on the way down', async () => {
    const { manager, log, run } = managed();
    const [first, second] = [
      new FakeService(log, 'first', { endsAtOnce: false }),
      new FakeService(log, 'second', { endsAtOnce: false }),
    ];
    manager.add(first, second);
    const { ended } = run();
    await settle();
    first.fail('one');
    await settle();
    second.fail('two');
    expect(String(await ended)).toBe('ServiceError: first failed: one');
  });

  it('gives up on services that do not end in time, and names them', async () => {
    const { manager, log, run, stop, clock } = managed({ stopTimeoutMs: 5000 });
    manager.add(new FakeService(log, 'good'), new FakeService(log, 'stubborn', { endsAtOnce: false }));
    const { outcome, ended } = run();
    await settle();
    stop.abort();
    await settle();
    clock.advance(4999);
    await settle();
    expect(outcome()).toBe('running');
    clock.advance(1);
    expect(String(await ended)).toBe('StopTimeoutError: stubborn did not end within 5000 ms');
  });

  it('refuses services that come too late, and to run twice', async () => {
    const { manager, log, run, stop } = managed();
    const { ended } = run();
    expect(() => manager.add(new FakeService(log, 'late'))).toThrow('runs already');
    await expect(manager.run(stop.signal)).rejects.toThrow('only once');
    stop.abort();
    expect(await ended).toBe('ended');
  });

  it('starts nothing when it is stopped already', async () => {
    const { manager, log, run, stop } = managed();
    manager.add(new FakeService(log, 'controller'));
    stop.abort();
    expect(await run().ended).toBe('ended');
    expect(log).toEqual([]);
  });

  it('runs real controllers, and can itself be run by another', async () => {
    const { manager, stop, run } = managed();
    const inner = new Manager({ env: testEnv(), name: 'inner' });
    const keys: string[] = [];
    const controller = new Controller({ name: 'real', env: testEnv(), reconcile: async (key) => void keys.push(key) });
    manager.add(inner.add(controller));
    const { ended } = run();
    controller.enqueue('a');
    await settle();
    expect(keys).toEqual(['a']);
    stop.abort();
    expect(await ended).toBe('ended');
  });
});
