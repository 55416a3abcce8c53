import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatTime } from '../../api/meta.ts';
import { testEnv } from '../../env/test.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import { Ending } from './ending.ts';
import { FakeHost } from './fake-hypervisor.fixture.ts';
import { Machines } from './machines.ts';

const { clock, log } = testEnv();
const POD = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'launcher' } };

/** A guest that was deleted so many seconds ago, and has half a minute to end. */
function goingGuest(seconds: number): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { deletionTimestamp: formatTime(clock.now() - seconds * 1000) },
    spec: { domain: { devices: {} }, terminationGracePeriodSeconds: 30 },
    status: { rightToRun: { epoch: 1, holder: { node: 'node-a', nodeUID: 'node-1', podUID: 'a' } } },
  };
}

const STANDING: Standing = { kind: 'holding', epoch: 1, mustContinue: false, isCompleted: false };

/** An agent that finds the machine of pod `a` on the host, and what it tells people. */
function agentOn(host: FakeHost): { readonly machines: Machines; readonly ending: Ending; readonly told: string[] } {
  const told: string[] = [];
  const machines = new Machines({
    hypervisor: host.hypervisor(),
    runOf: (podUID) => ({ directory: `/runs/${podUID}`, instance: podUID }),
    onNews: () => undefined,
    onEnd: async () => undefined,
    log,
  });
  const recorder = { event: (_: unknown, __: unknown, reason: string) => void told.push(reason) };
  return { machines, ending: new Ending({ clock, log, recorder, machines }), told };
}

const ATTEMPT = {
  epoch: 1,
  source: { node: 'node-a', nodeUID: 'node-1', podUID: 'a' },
  target: { node: 'node-b', nodeUID: 'node-2', podUID: 'b' },
  sourceMigrationUID: 'm',
  targetMigrationUID: 'm',
};

describe('a machine whose guest is to end, and that does not answer', () => {
  it('is looked at again, though it answers whoever comes next', async () => {
    const host = new FakeHost();
    await agentOn(host).machines.start('a', SMALL_MACHINE);
    const { machines, ending } = agentOn(host);
    host.isSilent = true;
    const scene = { podUID: 'a', vm: 'vm', pod: POD, guest: goingGuest(5) };
    expect(await ending.bring(scene, STANDING)).toEqual({ requeueAfterMs: 2000 });
    host.isSilent = false;
    expect((await machines.look('a')).fact).toBe('paused');
    host.isSilent = true;
    expect(await ending.bring(scene, STANDING)).toEqual({ requeueAfterMs: 2000 });
    expect(host.alive()).toHaveLength(1);
  });

  it.each<[what: string, standing: Standing, patienceMs: number]>([
    ['a while', STANDING, 15_000],
    ['longer, since its guest moves,', { ...STANDING, reserved: ATTEMPT }, 60_000],
  ])('is called for %s when its time is over, and then ended by force', async (_, standing, patienceMs) => {
    const host = new FakeHost();
    const former = agentOn(host).machines;
    await former.start('a', SMALL_MACHINE);
    await former.get('a')?.continue();
    const { ending } = agentOn(host);
    const bring = () => ending.bring({ podUID: 'a', vm: 'vm', pod: POD, guest: goingGuest(60) }, standing);
    host.isSilent = true;
    await bring();
    clock.advance(patienceMs - 1);
    // It has answered meanwhile: the time begins anew.
    host.isSilent = false;
    host.obeysPowerButton = false;
    await ending.bring({ podUID: 'a', vm: 'vm', pod: POD, guest: goingGuest(5) }, standing);
    host.isSilent = true;
    await bring();
    clock.advance(patienceMs - 1);
    await bring();
    expect(host.alive()).toHaveLength(1);
    clock.advance(1);
    await bring();
    expect(host.alive()).toEqual([]);
  });

  it('is left alone where there is none', async () => {
    const { ending } = agentOn(new FakeHost());
    expect(await ending.bring({ podUID: 'a', vm: 'vm', pod: POD, guest: goingGuest(60) }, STANDING)).toEqual({});
  });
});

describe('a guest whose pod is held', () => {
  const hold = { cause: 'Preemption', untilMs: 0, deadlineMs: 0, mover: 'Us' } as const;
  const { metadata: _, ...guest } = goingGuest(0);

  /** A pod that was deleted just now with 345 s, and holds its guest for so many seconds from now on. */
  function heldScene(seconds: number) {
    const nowMs = clock.now();
    const metadata = {
      name: 'launcher',
      deletionTimestamp: formatTime(nowMs + 345_000),
      deletionGracePeriodSeconds: 345,
    };
    return {
      podUID: 'a',
      vm: 'vm',
      pod: { ...POD, metadata },
      guest: { ...guest, metadata: {} },
      hold: { ...hold, untilMs: nowMs + seconds * 1000, deadlineMs: nowMs + 345_000 },
    };
  }

  async function running() {
    const host = new FakeHost();
    host.obeysPowerButton = false;
    const agent = agentOn(host);
    await agent.machines.start('a', SMALL_MACHINE);
    await agent.machines.get('a')?.continue();
    const [machine] = host.machines;
    if (!machine) throw new Error('there is no machine');
    return { ...agent, host, machine };
  }

  it('is left alone until then, and asked to shut down afterwards', async () => {
    const { ending, machine, told } = await running();
    expect(await ending.bring(heldScene(100), STANDING)).toEqual({ requeueAfterMs: 100_000 });
    await ending.bring(heldScene(50), STANDING);
    expect(machine.commands).not.toContain('powerDown');
    expect(told).toEqual(['ShutdownHeld']);
    await ending.bring(heldScene(-1), STANDING);
    expect(machine.commands.at(-1)).toBe('powerDown');
    expect(told).toEqual(['ShutdownHeld', 'MoveTooLate', 'ShuttingDown']);
  });

  it('is asked at once where its kubelet ends the pod by itself, and people are told why', async () => {
    const { ending, machine, told } = await running();
    const { hold: _hold, ...scene } = heldScene(0);
    const endingMs = clock.now();
    for (let time = 0; time < 2; time++) await ending.bring({ ...scene, pod: POD, endingMs }, STANDING);
    expect(machine.commands.filter((command) => command === 'powerDown')).toHaveLength(1);
    expect(told).toEqual(['EndedByKubelet', 'ShuttingDown']);
  });

  it('is asked by another agent just so', async () => {
    const { host, machine } = await running();
    const { ending } = agentOn(host);
    await ending.bring(heldScene(50), STANDING);
    expect(machine.commands).not.toContain('powerDown');
    await ending.bring(heldScene(-1), STANDING);
    expect(machine.commands.at(-1)).toBe('powerDown');
  });

  it('is asked only once its move is over, however that ends, and not ended meanwhile', async () => {
    const { ending, machine } = await running();
    const moving: Standing = { ...STANDING, reserved: ATTEMPT };
    expect(await ending.bring(heldScene(-1), moving)).toEqual({ requeueAfterMs: 250 });
    machine.status = 'paused';
    expect(await ending.bring(heldScene(-20), moving)).toEqual({ requeueAfterMs: 250 });
    expect(machine.end).toBeUndefined();
    machine.status = 'finished-migrate';
    expect(await ending.bring(heldScene(-200), moving)).toEqual({});
    expect(await ending.bring(heldScene(-200), { kind: 'granted', attempt: ATTEMPT, isPostCopy: true })).toEqual({});
    expect(machine.end).toBeUndefined();
  });

  it('is not held where it has yet to arrive', async () => {
    const { ending, machine } = await running();
    machine.status = 'incoming';
    await ending.bring(heldScene(100), { kind: 'receiving', attempt: ATTEMPT });
    expect(machine.end).toBeDefined();
  });

  it('is ended where it cannot go on anywhere', async () => {
    const { ending, machine } = await running();
    machine.status = 'failed';
    await ending.bring(heldScene(100), STANDING);
    expect(machine.end).toBeDefined();
  });

  it('is ended when all of its time is over', async () => {
    const { ending, machine } = await running();
    await ending.bring(heldScene(-300), STANDING);
    expect(machine.end).toBeDefined();
  });
});
