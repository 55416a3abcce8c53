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

/** An agent that finds the machine of pod `a` on the host. */
function agentOn(host: FakeHost): { readonly machines: Machines; readonly ending: Ending } {
  const machines = new Machines({
    hypervisor: host.hypervisor(),
    runOf: (podUID) => ({ directory: `/runs/${podUID}`, instance: podUID }),
    onNews: () => undefined,
    onEnd: async () => undefined,
    log,
  });
  return { machines, ending: new Ending({ clock, log, recorder: { event: () => undefined }, machines }) };
}

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

  it('is ended by force when its time is over', async () => {
    const host = new FakeHost();
    const { machines, ending } = agentOn(host);
    await machines.start('a', SMALL_MACHINE);
    host.isSilent = true;
    await ending.bring({ podUID: 'a', vm: 'vm', pod: POD, guest: goingGuest(60) }, STANDING);
    expect(host.alive()).toEqual([]);
  });

  it('is left alone where there is none', async () => {
    const { ending } = agentOn(new FakeHost());
    expect(await ending.bring({ podUID: 'a', vm: 'vm', pod: POD, guest: goingGuest(60) }, STANDING)).toEqual({});
  });
});
