import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../env/test.ts';
import type { Hypervisor } from '../../hypervisor/hypervisor.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import { FakeHost } from './fake-hypervisor.fixture.ts';
import { Machines } from './machines.ts';

/** Machines of one agent, on a host that only says that it runs machines, and counts how often it is asked. */
function agent(host: FakeHost): { machines: Machines; calls: string[]; ends: string[]; news: string[] } {
  const inner = host.hypervisor();
  const [calls, ends, news]: string[][] = [[], [], []];
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
    log: silentLogger,
  });
  return { machines, calls: calls ?? [], ends: ends ?? [], news: news ?? [] };
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
});
