import { describe, expect, it } from 'vitest';
import { ManualClock, seededRandom } from '../../env/test.ts';
import type { Machine, MachineEnd, MachineEvent } from '../hypervisor.ts';
import { SMALL_MACHINE } from '../machine.fixture.ts';
import { ModelHost, type ModelHostOptions } from './model-host.ts';

const RUN = { directory: '/runs/1', instance: 'run-1' };

/** A clock that stands once its process is dead. */
class AgentClock extends ManualClock {
  readonly #clock: ManualClock;
  isDead = false;

  constructor(clock: ManualClock) {
    super();
    this.#clock = clock;
  }

  override now(): number {
    return this.#clock.now();
  }

  override setTimer(callback: () => void, delayMs: number): { cancel(): void } {
    return this.#clock.setTimer(() => {
      if (!this.isDead) callback();
    }, delayMs);
  }
}

function setUp(options: Partial<ModelHostOptions> = {}) {
  const clock = new ManualClock();
  const host = new ModelHost({ env: { clock, random: seededRandom(1) }, latencyMs: () => 1, ...options });
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed++) {
      clock.advance(1);
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    }
  };
  /** Lets time pass until it is there. */
  const soon = async <T>(promise: Promise<T>): Promise<T> => {
    const there = new AbortController();
    const settled = promise.finally(() => there.abort());
    settled.catch(() => undefined);
    for (let ms = 0; ms < 100 && !there.signal.aborted; ms++) await pass(1);
    return settled;
  };
  const agent = () => {
    const agentClock = new AgentClock(clock);
    return { clock: agentClock, hypervisor: host.hypervisor(agentClock) };
  };
  const running = async (): Promise<Machine> => {
    const machine = await soon(agent().hypervisor.start(SMALL_MACHINE, RUN));
    await soon(machine.continue());
    return machine;
  };
  const said = () => [...host.alive].flatMap((model) => model.guest.said(clock.now()));
  return { clock, host, pass, soon, agent, running, said };
}

describe('a host of models', () => {
  it('starts a machine paused, and lets its guest run and stand', async () => {
    const { pass, soon, agent, said } = setUp();
    const machine = await soon(agent().hypervisor.start(SMALL_MACHINE, RUN));
    const events: MachineEvent['kind'][] = [];
    machine.onEvent(({ kind }) => events.push(kind));
    await pass(5000);
    expect(await soon(machine.status())).toBe('paused');
    expect(said()).toEqual([]);
    await soon(machine.continue());
    await pass(2010);
    const first = said();
    expect(first).toMatchObject([{ firstCount: 1, lastCount: 1 }]);
    await soon(machine.stop());
    await pass(5000);
    expect(said()).toEqual(first);
    await soon(machine.continue());
    await pass(510);
    expect(said()).toMatchObject([{ bootId: first[0]?.bootId, lastCount: 3 }]);
    expect(events).toEqual(['resumed', 'stopped', 'resumed']);
  });

  it('says that it is a model, on the console too', async () => {
    const { pass, soon, running } = setUp();
    const machine = await running();
    let heard = '';
    let isClosed = false;
    const connection = await soon(
      machine.openConsole({ data: (bytes) => (heard += Buffer.from(bytes)), closed: () => (isClosed = true) }),
    );
    await pass(2600);
    expect(heard).toMatch(/^model guest boot=[0-9a-f]{32} count=1 uptime=2\.0 memory=ok disk=ok\n/);
    expect(heard.trim().split('\n')).toHaveLength(3);
    connection.close();
    expect(isClosed).toBe(true);
    expect((await soon(machine.kill())).message).toContain('model');
  });

  it('counts anew with a new id when it is reset', async () => {
    const { pass, soon, running, said } = setUp();
    const machine = await running();
    await pass(3000);
    await soon(machine.reset());
    await pass(2100);
    const [before, after] = said();
    expect(before?.lastCount).toBeGreaterThan(3);
    expect(after).toMatchObject({ firstCount: 1, lastCount: 1 });
    expect(after?.bootId).not.toBe(before?.bootId);
  });

  it('keeps machines when their agent is dead, for the next one to find', async () => {
    const { pass, soon, agent, said } = setUp();
    const first = agent();
    const machine = await soon(first.hypervisor.start(SMALL_MACHINE, RUN));
    let isTold = false;
    void machine.continue().then(() => (isTold = true));
    await pass(1);
    first.clock.isDead = true;
    await pass(2500);
    expect(isTold).toBe(false);
    const found = await soon(agent().hypervisor.adopt(RUN));
    expect(await soon(found?.status() ?? Promise.reject(new Error('it is not found')))).toBe('running');
    expect(said()).toMatchObject([{ lastCount: 3 }]);
    expect(await soon(agent().hypervisor.adopt({ ...RUN, instance: 'another' }))).toBeUndefined();
  });

  it('loses them with its power, and what was under way', async () => {
    const { host, pass, soon, agent, running } = setUp();
    await running();
    const { hypervisor } = agent();
    void hypervisor.start(SMALL_MACHINE, { directory: '/runs/2', instance: 'run-2' });
    host.crash();
    await pass(100);
    expect([...host.alive]).toEqual([]);
    expect(await soon(agent().hypervisor.adopt(RUN))).toBeUndefined();
  });

  it.each<[how: string, end: (machine: Machine) => Promise<MachineEnd>, reason: string]>([
    ['told to quit', (machine) => machine.quit(), 'Quit'],
    ['killed', (machine) => machine.kill(), 'Killed'],
  ])('tells how a machine ended that was %s', async (_, end, reason) => {
    const { host, soon, running } = setUp();
    const machine = await running();
    expect(await soon(end(machine))).toMatchObject({ reason });
    expect(await soon(machine.ended)).toMatchObject({ reason });
    expect([...host.alive]).toEqual([]);
    await expect(soon(machine.status())).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it('does not know how a machine ended that another has started', async () => {
    const { host, soon, agent, running } = setUp();
    await running();
    const found = await soon(agent().hypervisor.adopt(RUN));
    for (const model of host.alive) model.over({ reason: 'Killed', message: 'by somebody', log: [] });
    expect(await soon(found?.ended ?? Promise.reject(new Error('it is not found')))).toMatchObject({
      reason: 'Unknown',
    });
  });

  it('turns off a guest that has booted and obeys', async () => {
    const { pass, soon, running } = setUp();
    const machine = await running();
    await soon(machine.powerDown());
    await pass(4000);
    expect(await soon(machine.status())).toBe('running');
    await soon(machine.powerDown());
    await pass(3010);
    expect(await soon(machine.ended)).toMatchObject({ reason: 'GuestShutDown' });
  });

  it('keeps a machine whose guest shut down until an agent is there', async () => {
    const { host, pass, soon, agent, running } = setUp();
    const machine = await running();
    machine.detach();
    for (const model of host.alive) model.shutDown();
    await pass(10_000);
    expect([...host.alive]).toHaveLength(1);
    const found = await soon(agent().hypervisor.adopt(RUN));
    expect(await soon(found?.ended ?? Promise.reject(new Error('it is not found')))).toMatchObject({
      reason: 'GuestShutDown',
    });
    expect([...host.alive]).toEqual([]);
    await expect(machine.kill()).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it('fails as it is told to', async () => {
    let fault: string | undefined = 'no memory';
    const { host, soon, agent, running } = setUp({ startFault: () => fault });
    await expect(soon(agent().hypervisor.start(SMALL_MACHINE, RUN))).rejects.toMatchObject({ code: 'StartFailed' });
    expect([...host.alive]).toEqual([]);
    fault = undefined;
    const machine = await running();
    for (const model of host.alive) model.isSilent = true;
    await expect(soon(machine.status())).rejects.toMatchObject({ code: 'Unreachable' });
    const adopted = await soon(agent().hypervisor.adopt(RUN));
    expect(adopted).toBeDefined();
    if (adopted) await expect(soon(adopted.status())).rejects.toMatchObject({ code: 'Unreachable' });
    for (const model of host.alive) {
      model.isSilent = false;
      model.panic();
    }
    expect(await soon(machine.status())).toBe('failed');
    await expect(soon(machine.continue())).rejects.toMatchObject({ code: 'Refused' });
  });

  it('has a machine twice that was started twice, and tells its onlooker', async () => {
    const executing: number[] = [];
    const { host, soon, running, agent } = setUp({
      onChange: () => executing.push([...host.alive].filter((model) => model.isExecuting).length),
    });
    await running();
    await soon((await soon(agent().hypervisor.start(SMALL_MACHINE, RUN))).continue());
    expect(executing).toEqual([0, 1, 1, 2]);
  });
});
