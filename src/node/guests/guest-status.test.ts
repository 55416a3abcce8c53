import { describe, expect, it } from 'vitest';
import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstancePhase,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MachineEnd, MachineStatus } from '../../hypervisor/hypervisor.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import { guestStatus } from './guest-status.ts';

const NOW = Date.UTC(2026, 0, 1);
const self: Runner = { node: 'node-a', nodeUID: 'n', podUID: 'p' };
const other: Runner = { node: 'node-b', nodeUID: 'm', podUID: 'q' };
const HOLDING: Standing = { kind: 'holding', epoch: 3, mustContinue: false, isCompleted: false };
const ENDED: Standing = { kind: 'ended', epoch: 3 };
const HELD: RightToRun = { epoch: 3, holder: self };

const guest = (phase: VirtualMachineInstancePhase, rightToRun?: RightToRun): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: {},
  spec: { domain: { devices: {} } },
  status: {
    phase,
    nodeName: self.node,
    phaseTransitionTimestamps: [{ phase: 'Scheduled' }],
    conditions: [{ type: 'Ready', status: 'True' }],
    ...(rightToRun ? { rightToRun } : {}),
  },
});

function told(
  of: VirtualMachineInstance,
  standing: Standing,
  status?: MachineStatus,
  reason?: MachineEnd['reason'],
): ReturnType<typeof guestStatus> {
  const end = reason && { reason, message: '', log: [] };
  return guestStatus({ guest: of, self, standing, status, end }, NOW);
}

describe('what is said of a guest', () => {
  it('that runs', () => {
    expect(told(guest('Scheduled', HELD), HOLDING, 'running')).toEqual({
      phase: 'Running',
      phaseTransitionTimestamps: [
        { phase: 'Scheduled' },
        { phase: 'Running', phaseTransitionTimestamp: '2026-01-01T00:00:00Z' },
      ],
      conditions: [{ type: 'Ready', status: 'True' }],
    });
  });
  it('that is held, by whom, and no more once it goes on', () => {
    const { conditions } = told(guest('Running', HELD), HOLDING, 'paused');
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Paused', reason: 'PausedByUser' }));
    const broken = told(guest('Running', HELD), HOLDING, 'disk-error').conditions;
    expect(broken).toContainEqual(expect.objectContaining({ type: 'Paused', reason: 'PausedIOError' }));
    const held = guest('Running', HELD);
    const moved = told({ ...held, status: { ...held.status, conditions: broken } }, HOLDING, 'paused');
    expect(moved.conditions).toEqual(broken);
    const again = told({ ...held, status: { ...held.status, conditions: conditions } }, HOLDING, 'running');
    expect(again.conditions).toEqual([{ type: 'Ready', status: 'True' }]);
    expect(again.phaseTransitionTimestamps).toEqual([{ phase: 'Scheduled' }]);
  });
  it.each([
    ['has not been continued yet', guest('Scheduled', HELD), { ...HOLDING, mustContinue: true }, 'paused'],
    ['is not recorded', guest('Scheduled'), HOLDING, 'running'],
    ['is recorded for another', guest('Running', { epoch: 4, holder: other }), HOLDING, 'running'],
    ['is recorded in another epoch', guest('Running', { epoch: 4, holder: self }), HOLDING, 'running'],
    ['does not answer', guest('Running', HELD), HOLDING, undefined],
    ['is about to end', guest('Running', HELD), HOLDING, 'shut-down'],
    ['is starting', guest('Scheduled'), { kind: 'starting', epoch: 3 }, undefined],
    ['ended and is with another', guest('Running', { epoch: 4, holder: other }), ENDED, undefined],
    ['went elsewhere', guest('Running', HELD), { ...ENDED, givenTo: other }, undefined],
    ['never had a record', guest('Scheduled'), ENDED, undefined],
    ['was done before', guest('Succeeded', HELD), ENDED, undefined],
  ] as const)('that %s: nothing', (_, of, standing, status) => expect(told(of, standing, status)).toEqual({}));
  it('whose agent answers, and no more once it does not', () => {
    const agent = { version: '7', hostname: 'h', os: { name: 'Debian' } };
    const of = guest('Running', HELD);
    const facts = { self, standing: HOLDING, status: 'running', end: undefined } as const;
    const there = guestStatus({ ...facts, guest: of, agent }, NOW);
    expect(there.guestOSInfo).toEqual({ name: 'Debian' });
    expect(there.conditions).toContainEqual({
      type: 'AgentConnected',
      status: 'True',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
    const known = { ...of, status: { ...of.status, ...there } };
    expect(guestStatus({ ...facts, guest: known, agent: 'unknown' }, NOW).conditions).toEqual(there.conditions);
    const gone = guestStatus({ ...facts, guest: known, agent: 'absent' }, NOW);
    expect(gone).toMatchObject({ conditions: [{ type: 'Ready', status: 'True' }] });
    expect(gone).not.toHaveProperty('guestOSInfo');
    const end = { reason: 'GuestShutDown', message: '', log: [] } as const;
    const ended = guestStatus({ ...facts, standing: ENDED, guest: known, status: undefined, agent, end }, NOW);
    expect(ended.conditions).toEqual([{ type: 'Ready', status: 'True' }]);
  });
  it.each([
    ['GuestShutDown', 'Succeeded'],
    ['Quit', 'Failed'],
    ['Killed', 'Failed'],
    ['Failed', 'Failed'],
    ['Unknown', 'Failed'],
    [undefined, 'Failed'],
  ] as const)('whose machine ended by %s: it has %s', (reason, phase) => {
    expect(told(guest('Running', HELD), ENDED, undefined, reason)).toMatchObject({ phase });
    expect(told(guest('Running', { epoch: 4 }), ENDED, undefined, reason)).toMatchObject({ phase });
  });
  it('that was lost with the node that took it, once nobody has it, and not where it went for good', () => {
    const gone: Standing = { ...ENDED, givenTo: other };
    const { phase, conditions } = told(guest('Running', { epoch: 4 }), gone, undefined, 'Quit');
    expect(phase).toBe('Failed');
    const message = 'the guest was lost with node node-b, which had taken it over';
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Synchronized', reason: 'GuestLost', message }));
    expect(told(guest('Running', { epoch: 4 }), { ...gone, isAcross: true })).toEqual({});
  });
  it('that ended elsewhere: nothing, which would not be believed', () => {
    const there = guest('Running', { epoch: 4 });
    const moved = { ...there, status: { ...there.status, nodeName: other.node } };
    expect(told(moved, ENDED, undefined, 'Quit')).toEqual({});
    expect(told(moved, { ...ENDED, givenTo: other }, undefined, 'Quit')).toEqual({});
  });
  it('that failed, together with why, unless it was told to go', () => {
    const end = { reason: 'Failed', message: 'QEMU did not start', log: ['no such machine type'] } as const;
    const facts = { guest: guest('Scheduled', HELD), self, standing: ENDED, status: undefined };
    expect(guestStatus({ ...facts, end }, NOW).conditions).toContainEqual(
      expect.objectContaining({
        type: 'Synchronized',
        status: 'False',
        reason: 'Failed',
        message: 'QEMU did not start\nno such machine type',
      }),
    );
    expect(guestStatus({ ...facts, end: { ...end, reason: 'Quit' } }, NOW).conditions).toEqual([
      { type: 'Ready', status: 'True' },
    ]);
  });
});
