import { beforeEach, describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { silentLogger } from '../../env/test.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';
import type { GuestNotes } from '../guests/guest-notes.ts';
import type { Machines } from '../guests/machines.ts';
import type { Outcome } from '../guests/scene.ts';
import { LeavingDisks } from './leaving-disks.ts';

const SELF = { node: 'a', nodeUID: 'uid-a', podUID: 'pod-a' };
const DISK = { path: '/x', format: 'raw', cache: 'none' } as const;
const SPEC: MachineSpec = {
  ...SMALL_MACHINE,
  disks: [
    { ...DISK, volume: 'root', place: { bus: 'virtio', at: 4 } },
    { ...DISK, volume: 'data', place: { bus: 'virtio', at: 5 }, isDevice: true },
  ],
  cdroms: [{ volume: 'init', port: 1, path: '/init.iso' }],
};
const VOLUMES = [
  { name: 'root', sizeBytes: 1024, isBlock: false },
  { name: 'data', sizeBytes: 4096, isBlock: true },
  { name: 'init', sizeBytes: 2048, isBlock: false },
];
const STATE: MigrationState = {
  migrationUid: 'm',
  sourceState: { virtualMachineInstanceUID: 'guest', runner: SELF, epoch: 3 },
};

const guest = (migrationState: MigrationState): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'web', uid: 'guest' },
  spec: { domain: { devices: {} } },
  status: { migrationState },
});

let asked: number;
let enqueued: string[];
let answers: boolean;
let disks: LeavingDisks;
beforeEach(() => {
  [asked, enqueued, answers] = [0, [], true];
  const sizes = async () => {
    asked++;
    if (!answers) throw new Error('it does not answer');
    return new Map([
      ['virtio 5', 4096],
      ['sata 1', 2048],
    ]);
  };
  disks = new LeavingDisks({
    machines: { get: () => ({ disks: { sizes } }) } as unknown as Pick<Machines, 'get'>,
    notes: { get: () => ({ spec: SPEC }) } as unknown as Pick<GuestNotes, 'get'>,
    diskBytesOf: async ({ volume }) => (volume === 'root' ? 1024 : undefined),
    log: silentLogger,
    enqueue: (podUID) => enqueued.push(podUID),
  });
});

async function tend(state: MigrationState, kind = 'holding'): Promise<void> {
  disks.tend({ podUID: 'pod-a', guest: guest(state), view: { self: SELF, standing: { kind } } } as unknown as Outcome);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}
const told = (state: MigrationState): MigrationState | undefined => disks.told('pod-a', guest(state), SELF);

describe('the disks of a guest that is to go elsewhere', () => {
  it('are told as its machine sees them, before it is known where it goes', async () => {
    expect(told(STATE)).toBeUndefined();
    await tend(STATE);
    expect(enqueued).toEqual(['pod-a']);
    expect(told(STATE)).toEqual({ ...STATE, sourceState: { ...STATE.sourceState, volumes: VOLUMES } });
  });

  it('are asked for once, and told once', async () => {
    await tend(STATE);
    await tend(STATE);
    expect(asked).toBe(1);
    expect(told({ ...STATE, sourceState: { ...STATE.sourceState, volumes: VOLUMES } })).toBeUndefined();
  });

  it('are asked for again where the machine did not answer', async () => {
    answers = false;
    await tend(STATE);
    expect(told(STATE)).toBeUndefined();
    answers = true;
    await tend(STATE);
    expect(told(STATE)?.sourceState?.volumes).toEqual(VOLUMES);
  });

  it.each<[string, MigrationState]>([
    ['that moves within its object', { migrationUid: 'm' }],
    [
      'that comes from another',
      { ...STATE, sourceState: { ...STATE.sourceState, virtualMachineInstanceUID: 'other' } },
    ],
    ['that is in another pod', { ...STATE, sourceState: { ...STATE.sourceState, runner: { ...SELF, podUID: 'x' } } }],
    ['that has begun to go', { ...STATE, startTimestamp: '2026-01-01T00:00:00Z' }],
    ['that has gone, or stayed', { ...STATE, completed: true }],
  ])("are nobody's business of one %s", async (_, state) => {
    await tend(STATE);
    expect(told(state)).toBeUndefined();
    disks.forget('pod-a');
    await tend(state);
    expect(asked).toBe(1);
  });

  it('are not asked for where the guest is not', async () => {
    await tend(STATE, 'granted');
    expect(asked).toBe(0);
  });
});
