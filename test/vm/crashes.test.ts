import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { claim, probe, virtualMachine } from '../support/guest-manifests.ts';
import { IS_FULL, SEED, someOf } from '../support/sample.ts';
import { say } from '../support/say.ts';
import { conditionOf, VirtualMachines } from '../support/virtual-machines.ts';

/**
 * Everything but QEMU is killed, at any moment, again and again: no guest is lost, none runs twice, and those that were to
 * run all the time never noticed.
 */
const AGENT_DEATHS = IS_FULL ? 50 : 5;
const CONTROL_PLANE_DEATHS = IS_FULL ? 50 : 2;
/** Deaths come early in a life, and late. */
const PAUSES_MS_MAX = [50, 300, 1500];

/** Draws from the run's seed, so that a failure can be repeated, as far as real processes can. */
class Dice {
  #state = SEED;

  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * limit);
  }

  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }
}

const NODES = ['node-1', 'node-2'];
const STEADY = ['steady-0', 'steady-1', 'steady-2'];
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

let host: VirtualMachines;
let boots: Map<string, string>;
const dice = new Dice();

beforeAll(async () => {
  host = await VirtualMachines.start({ nodes: NODES.length });
  for (const name of STEADY) {
    const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: name } } }];
    await host.create(claim(name, 'shared', '4Mi'), virtualMachine(name, probe({ volumes })));
  }
  boots = new Map();
  for (const name of STEADY) boots.set(name, (await host.lives(name)).boot);
});
afterAll(() => host.stop());

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, dice.below(dice.of(PAUSES_MS_MAX))));
}

/** Machines that come and go meanwhile, so that deaths meet every step of a guest's life. */
class Comings {
  readonly #names: string[] = [];
  #count = 0;

  /** One more comes, or one goes. Whoever would take the request may be dead. */
  async step(): Promise<void> {
    const leaver = this.#names.length > 2 ? this.#names.shift() : undefined;
    if (leaver !== undefined) return insist(() => host.delete('VirtualMachine', leaver));
    const name = `passing-${host.godwit.pid}-${this.#count++}`;
    await insist(() => host.create(virtualMachine(name, probe())));
    this.#names.push(name);
  }

  get names(): readonly string[] {
    return this.#names;
  }
}

/** Asks until there is an answer. That something was made or is gone already is one. */
function insist(ask: () => Promise<void>): Promise<void> {
  return eventually(async () => {
    try {
      await ask();
    } catch (error) {
      if (!/got (?:404|409)/.test(String(error))) throw error;
    }
  }, 60_000);
}

async function allIsWell(names: readonly string[]): Promise<void> {
  for (const name of [...STEADY, ...names]) {
    const sign = await host.lives(name);
    expect([name, sign.memory]).toEqual([name, 'ok']);
  }
  for (const name of STEADY) {
    const sign = await host.lives(name);
    expect([name, sign.boot, sign.disk]).toEqual([name, boots.get(name), 'ok']);
    const lines = host.signs(await host.guest(name)).map(({ count }) => count);
    expect(lines).toEqual(lines.map((_, index) => (lines[0] ?? 0) + index));
  }
  await eventually(() => expect(host.qemus()).toHaveLength(STEADY.length + names.length), 60_000);
  say(`${host.assertNeverDoubled()} signs of life, none of them twice`);
}

describe('a guest', () => {
  it(`survives its agent, killed at any moment, ${AGENT_DEATHS} times`, async () => {
    const comings = new Comings();
    for (let death = 0; death < AGENT_DEATHS; death++) {
      if (death % 2 === 0) await comings.step();
      await pause();
      await host.replaceAgent(dice.of(NODES));
    }
    await allIsWell(comings.names);
    for (const name of comings.names) await host.delete('VirtualMachine', name);
    for (const name of comings.names) await host.isGone(name);
  }, 900_000);

  it(`survives the control plane, killed at any moment, ${CONTROL_PLANE_DEATHS} times`, async () => {
    const comings = new Comings();
    for (let death = 0; death < CONTROL_PLANE_DEATHS; death++) {
      await comings.step();
      await pause();
      await host.godwit.kill();
      await pause();
      await host.godwit.start();
    }
    await host.nodesAreReady(NODES.length);
    await allIsWell(comings.names);
  }, 900_000);

  const some = someOf(2, 1);

  some('is reported at once when QEMU dies, with how', async () => {
    await host.create(virtualMachine('mortal', probe(), { runStrategy: 'Manual' }));
    await host.power('mortal', 'start');
    await host.lives('mortal');
    process.kill(host.qemuOf(await host.guest('mortal')), 'SIGKILL');
    await host.isSaidToBe('mortal', 'Stopped');
    await host.told('mortal', /SIGKILL/);
  });

  some('goes on without its agent, whose node is not ready, and nobody starts it elsewhere', async () => {
    const name = 'steady-0';
    const guest = await host.guest(name);
    const node: string = guest.status.nodeName;
    // As one whose machine was held for a while, and which then wakes up late.
    const resume = await host.holdAgent(node);
    await eventually(async () => {
      const { json } = (await host.api.request('GET', `/api/v1/nodes/${node}`)).expect(200);
      expect(conditionOf(json, 'Ready')?.status).toBe('Unknown');
    }, 120_000);
    const before = host.signs(guest).length;
    await eventually(() => expect(host.signs(guest).length).toBeGreaterThan(before + 5));
    expect((await host.guest(name)).status).toMatchObject({ phase: 'Running', nodeName: node });
    resume();
    await host.nodesAreReady(NODES.length);
    expect((await host.lives(name)).boot).toBe(boots.get(name));
    expect(host.assertNeverDoubled()).toBeGreaterThan(10);
  });
});
