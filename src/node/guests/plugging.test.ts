import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import { HypervisorError, type Machine } from '../../hypervisor/hypervisor.ts';
import { silentLogger } from '../../env/test.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { View } from '../../migration/right-to-run/view.ts';
import { Plugging } from './plugging.ts';
import type { Outcome } from './scene.ts';

const SELF = { node: 'a', nodeUID: 'uid-of-a', podUID: 'pod-1' };
const HOLDING = { kind: 'holding', epoch: 1, mustContinue: false } as unknown as Standing;

interface Making {
  readonly wanted?: number;
  readonly room?: string;
  readonly standing?: Standing;
  readonly machine?: 'running' | 'paused' | 'incoming';
  readonly status?: VirtualMachineInstanceStatus;
}

/** A guest with two cores in each of its two sockets, which is to have four, in a pod that was made for that. */
function outcomeOf({ wanted = 4, room = '4', standing = HOLDING, machine = 'running', status }: Making = {}): Outcome {
  return {
    podUID: 'pod-1',
    vm: 'vm-1',
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { annotations: { 'godwit.dev/sockets': room } } },
    guest: {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'web', namespace: 'shop' },
      spec: { domain: { devices: {}, cpu: { sockets: wanted, cores: 2 } } },
      status: {
        phase: 'Running',
        currentCPUTopology: { sockets: 2, cores: 2, threads: 1 },
        rightToRun: { epoch: 1, holder: SELF },
        ...status,
      },
    },
    view: { self: SELF, standing } as View,
    seen: { fact: 'running', status: machine },
  };
}

function scene(plug: (count: number) => Promise<void> = async () => undefined) {
  const [plugged, events]: [number[], string[]] = [[], []];
  const processors = {
    count: async () => 4,
    plug: async (count: number) => {
      plugged.push(count);
      await plug(count);
    },
  };
  const machines = { get: () => ({ processors }) as unknown as Machine };
  const recorder = { event: (_: object, type: string, reason: string) => void events.push(`${type} ${reason}`) };
  return { plugging: new Plugging({ machines, recorder, log: silentLogger }), plugged, events };
}

describe('plugging in memory', () => {
  const MIB = 2 ** 20;
  const outcome = (pod: string, guest = '1280Mi'): Outcome => {
    const made = outcomeOf({ wanted: 2 });
    return {
      ...made,
      pod: { ...made.pod, metadata: { annotations: { 'godwit.dev/memory': pod } } } as Outcome['pod'],
      guest: {
        ...made.guest,
        spec: { domain: { devices: {}, memory: { guest, maxGuest: '2Gi' } } },
        status: { ...made.guest?.status, memory: { guestAtBoot: '1Gi', guestCurrent: '1Gi', memoryOverhead: '100Mi' } },
      } as Outcome['guest'],
    };
  };
  const memoryScene = () => {
    const [plugged, events]: [unknown[], string[]] = [[], []];
    const memory = { plug: async (...args: unknown[]) => void plugged.push(args) };
    const machines = { get: () => ({ memory }) as unknown as Machine };
    const recorder = { event: (_: object, type: string, reason: string) => void events.push(`${type} ${reason}`) };
    return { plugging: new Plugging({ machines, recorder, log: silentLogger }), plugged, events };
  };

  it('gives a guest the memory that its pod was made for, and says so', async () => {
    const { plugging, plugged, events } = memoryScene();
    const { fields } = await plugging.bring(outcome('1280Mi'));
    expect(plugged).toEqual([[2, 128 * MIB]]);
    expect(fields.memory).toEqual({
      guestAtBoot: '1Gi',
      guestCurrent: '1280Mi',
      guestRequested: '1280Mi',
      memoryOverhead: '100Mi',
    });
    expect(events).toEqual(['Normal SuccessfulMemoryPlug']);
  });

  it('gives a guest no more than its pod was made for', async () => {
    const { plugging, plugged } = memoryScene();
    expect((await plugging.bring(outcome('1152Mi'))).fields.memory?.guestCurrent).toBe('1152Mi');
    expect(await plugging.bring(outcome('1Gi'))).toEqual({ fields: {} });
    expect(plugged).toEqual([[1, 128 * MIB]]);
  });
});

describe('plugging in', () => {
  it('gives a guest the processors that its pod was made for, and says so', async () => {
    const { plugging, plugged, events } = scene();
    const { fields, retryAfterMs } = await plugging.bring(outcomeOf());
    expect(plugged).toEqual([8]);
    expect(fields).toEqual({ currentCPUTopology: { sockets: 4, cores: 2, threads: 1 } });
    expect(retryAfterMs).toBeUndefined();
    expect(events).toEqual(['Normal SuccessfulProcessorPlug']);
  });

  it('gives a guest no more than its pod was made for, nor than it is to have', async () => {
    const { plugging, plugged } = scene();
    await plugging.bring(outcomeOf({ room: '3' }));
    await plugging.bring(outcomeOf({ wanted: 3, room: '8' }));
    expect(plugged).toEqual([6, 6]);
  });

  it.each<readonly [string, Making]>([
    ['that has what it is to have', { wanted: 2 }],
    ['whose pod was made for less', { room: '2' }],
    ['whose pod does not say what it was made for', { room: '' }],
    ['that is about to be moved', { standing: { ...HOLDING, reserved: {} } as unknown as Standing }],
    ['that is to be continued first', { standing: { ...HOLDING, mustContinue: true } as unknown as Standing }],
    ['that is coming', { standing: { kind: 'receiving' } as unknown as Standing, machine: 'incoming' }],
    ['that has not all come', { status: { migrationState: { migrationUid: 'move-1' } } }],
    [
      'that somebody else has by the record',
      { status: { rightToRun: { epoch: 2, holder: { ...SELF, podUID: '2' } } } },
    ],
    ['of which nobody has said how large it is', { status: { currentCPUTopology: {} } }],
  ])('leaves a guest alone %s', async (_what, making) => {
    const { plugging, plugged } = scene();
    expect(await plugging.bring(outcomeOf(making))).toEqual({ fields: {} });
    expect(plugged).toEqual([]);
  });

  it('says that it failed, and tries again', async () => {
    const { plugging, events } = scene(() => Promise.reject(new HypervisorError('Refused', 'no room')));
    const { fields, retryAfterMs } = await plugging.bring(outcomeOf());
    expect(fields).toEqual({});
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(events).toEqual(['Warning FailedProcessorPlug']);
  });
});
