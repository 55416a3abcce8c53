import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../env/test.ts';
import type { Hypervisor } from '../../hypervisor/hypervisor.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import { FakeHost, type FakeMachine } from './fake-hypervisor.fixture.ts';
import { Machines } from './machines.ts';

/** Machines of one agent, on a host that only says that it runs machines, and counts how often it is asked. */
function agent(host: FakeHost) {
  const inner = host.hypervisor();
  const [calls, ends, news, clocks]: string[][] = [[], [], [], []];
  const slow = <T>(what: string, act: () => Promise<T>): Promise<T> => {
    calls?.push(what);
    return new Promise((resolve, reject) => setImmediate(() => void act().then(resolve, reject)));
  };
  const hypervisor: Hypervisor = {
    start: (spec, run) => slow('start', () => inner.start(spec, run)),
    adopt: (run) => slow('adopt', () => inner.adopt(run)),
  };
  const machines = new Machines({
    hypervisor,
    runOf: (podUID) => ({ directory: `/runs/${podUID}`, instance: podUID }),
    onNews: (podUID) => news?.push(podUID),
    onEnd: async (podUID, { reason }) => void ends?.push(`${podUID} ${reason}`),
    agents: {
      attend: () => undefined,
      of: () => 'unknown',
      setClock: (podUID) => void clocks?.push(podUID),
      letGo: () => undefined,
    },
    log: silentLogger,
  });
  return { machines, clocks: clocks ?? [], calls: calls ?? [], ends: ends ?? [], news: news ?? [] };
}

describe('the machines of an agent', () => {
  it('are looked for once, by however many at once', async () => {
    const host = new FakeHost();
    await agent(host).machines.start('a', SMALL_MACHINE);
    const { machines, calls } = agent(host);
    const seen = await Promise.all([machines.look('a'), machines.look('a'), machines.look('b'), machines.look('b')]);
    expect(seen.map(({ fact }) => fact)).toEqual(['paused', 'paused', 'dead', 'dead']);
    expect(await machines.look('b')).toEqual({ fact: 'dead' });
    expect(calls).toEqual(['adopt', 'adopt']);
  });
  it('are started after whoever looks for them has looked, and seen by who comes meanwhile', async () => {
    const host = new FakeHost();
    const { machines, calls } = agent(host);
    const looking = machines.look('a');
    const starting = machines.start('a', SMALL_MACHINE);
    expect((await looking).fact).toBe('dead');
    const meanwhile = machines.look('a');
    await starting;
    expect((await meanwhile).fact).toBe('paused');
    expect(calls).toEqual(['adopt', 'start']);
    await expect(machines.start('a', SMALL_MACHINE)).rejects.toThrow('has a machine already');
    expect(host.violations).toEqual([]);
  });
  it('that did not start are looked for again', async () => {
    const host = new FakeHost();
    const { machines, calls } = agent(host);
    host.startFailure = 'no';
    await expect(machines.start('a', SMALL_MACHINE)).rejects.toThrow('no');
    expect(await machines.look('a')).toEqual({ fact: 'dead' });
    expect(calls).toEqual(['start', 'adopt']);
  });
  it('tell of their end, unless they were let go of', async () => {
    const host = new FakeHost();
    const { machines, ends, news } = agent(host);
    await machines.start('a', SMALL_MACHINE);
    await machines.start('b', SMALL_MACHINE);
    host.machines[0]?.shutsDown();
    await new Promise((resolve) => setImmediate(resolve));
    expect(ends).toEqual(['a GuestShutDown', 'a GuestShutDown']);
    expect(new Set(news)).toEqual(new Set(['a']));
    expect(await machines.look('a')).toMatchObject({ fact: 'dead', end: { reason: 'GuestShutDown' } });
    expect(machines.get('a')).toBeUndefined();
    machines.letGo();
    host.machines[1]?.ends({ reason: 'Killed', message: '', log: [] });
    await new Promise((resolve) => setImmediate(resolve));
    expect(ends).toHaveLength(2);
  });
  it('are known by what they have said last of their migration, to who wants to know, once they cannot be asked', async () => {
    const host = new FakeHost();
    const { machines } = agent(host);
    await machines.start('a', SMALL_MACHINE);
    const [machine] = host.machines;
    machine?.says({ kind: 'migration', state: 'postcopy-active', atMs: undefined });
    machine?.says({ kind: 'migration', state: 'completed', atMs: undefined });
    host.isSilent = true;
    expect(await machines.look('a', true)).toEqual({ fact: 'unknown', migration: 'completed' });
    machine?.ends({ reason: 'Killed', message: '', log: [] });
    await new Promise((resolve) => setImmediate(resolve));
    expect(await machines.look('a', true)).toMatchObject({ fact: 'dead', migration: 'completed' });
    expect(await machines.look('a')).not.toHaveProperty('migration');
  });
  it.each([undefined, 'postcopy-active'] as const)(
    'are known by what they were found to be done with, where nobody has heard more than %s',
    async (heard) => {
      const host = new FakeHost();
      await agent(host).machines.start('a', SMALL_MACHINE);
      const [machine] = host.machines;
      if (!machine) throw new Error('no machine was started');
      const { machines } = agent(host);
      await machines.look('a');
      if (heard) machine.says({ kind: 'migration', state: heard, atMs: undefined });
      machine.copy = 'completed';
      expect(await machines.look('a', true)).toMatchObject({ fact: 'paused', migration: 'completed' });
      machine.shutsDown();
      await new Promise((resolve) => setImmediate(resolve));
      expect(await machines.look('a', true)).toMatchObject({ fact: 'dead', migration: 'completed' });
    },
  );
  it('that do not answer may live', async () => {
    const host = new FakeHost();
    const { machines } = agent(host);
    await machines.start('a', SMALL_MACHINE);
    host.isSilent = true;
    expect(await machines.look('a')).toEqual({ fact: 'unknown' });
    expect(await agent(host).machines.look('a')).toEqual({ fact: 'unknown' });
    machines.forget('a');
    expect(machines.get('a')).toBeDefined();
  });

  it.each<[what: string, isIncoming: boolean, stand: (machine: FakeMachine) => void, times: number]>([
    ['begins', false, () => undefined, 0],
    ['came from elsewhere', true, () => undefined, 1],
    ['was paused', false, (machine) => machine.becomes('paused', 'stopped'), 1],
    ['stood still for a copy that came to nothing', false, (machine) => machine.becomes('paused', 'stopped'), 1],
    ['came, and was paused', true, (machine) => machine.becomes('paused', 'stopped'), 2],
  ])(
    'set the clock of a guest that %s, and announce it, as often as it stood still',
    async (_, isIncoming, stand, times) => {
      const host = new FakeHost();
      const { machines, clocks } = agent(host);
      await machines.start('a', { ...SMALL_MACHINE, ...(isIncoming ? { incoming: { ramBytes: 1 } } : {}) });
      const [machine] = host.machines;
      if (!machine) throw new Error('no machine was started');
      await machines.get('a')?.continue();
      stand(machine);
      // As QEMU does by itself where a copy fails.
      machine.becomes('running', 'resumed');
      expect(clocks).toHaveLength(times);
      expect(machine.commands.filter((command) => command === 'announce')).toHaveLength(times);
    },
  );

  it('that stood still since before this agent do so, too', async () => {
    const host = new FakeHost();
    await agent(host).machines.start('a', SMALL_MACHINE);
    const { machines, clocks } = agent(host);
    await machines.look('a');
    await machines.get('a')?.continue();
    expect(clocks).toEqual(['a']);
    expect(host.machines[0]?.commands).toContain('announce');
  });
});
