import { describe, expect, it } from 'vitest';
import type { RunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstancePhase,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { ApiError } from '../../api/status.ts';
import { planPower, type PowerAction, type PowerOptions } from './power-requests.ts';

function machine(runStrategy: RunStrategy, status: VirtualMachine['status'] = {}): VirtualMachine {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'box' },
    spec: { runStrategy, template: { spec: { domain: { devices: {} } } } },
    status,
  };
}

function guest(phase: VirtualMachineInstancePhase, graceSeconds = 30): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'box', uid: 'u1' },
    spec: { domain: { devices: {} }, terminationGracePeriodSeconds: graceSeconds },
    status: { phase },
  };
}

/** What is done, in a word: the new strategy, the requests, the guest's new grace; or what is said instead. */
function outcome(
  action: PowerAction,
  strategy: RunStrategy,
  phase: VirtualMachineInstancePhase | undefined,
  options: PowerOptions = {},
): string {
  try {
    const plan = planPower(action, machine(strategy), phase === undefined ? undefined : guest(phase), options);
    const {
      machine: changed,
      machineStatus,
      guest: grace,
    } = plan as {
      machine?: { spec: { runStrategy: string } };
      machineStatus?: { status: { stateChangeRequests: { action: string; uid?: string }[] } };
      guest?: { spec: { terminationGracePeriodSeconds: number } };
    };
    return [
      ...(changed ? [changed.spec.runStrategy] : []),
      ...(machineStatus?.status.stateChangeRequests.map(({ action: each, uid }) => [each, uid].join(' ').trim()) ?? []),
      ...(grace ? [`grace ${grace.spec.terminationGracePeriodSeconds}`] : []),
    ].join(', ');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return `${error.code} ${error.message.replace(/^Operation cannot be fulfilled on virtualmachine.kubevirt.io "box": /, '')}`;
  }
}

describe('start', () => {
  it.each<[RunStrategy, VirtualMachineInstancePhase | undefined, string]>([
    ['Halted', undefined, 'Always'],
    ['Halted', 'Succeeded', 'Always'],
    ['Halted', 'Running', '409 VM is already running'],
    ['Manual', undefined, 'Start'],
    ['Manual', 'Failed', 'Stop u1, Start'],
    ['Manual', 'Scheduling', '409 VM is already running'],
    ['RerunOnFailure', undefined, 'Start'],
    ['RerunOnFailure', 'Succeeded', 'Stop u1, Start'],
    ['RerunOnFailure', 'Failed', '409 RerunOnFailure does not support starting VM from failed state'],
    ['Always', undefined, '409 Always does not support manual start requests'],
    ['Once', 'Succeeded', '409 Once does not support manual start requests'],
    ['WaitAsReceiver', undefined, '409 WaitAsReceiver does not support manual start requests'],
  ])('%s with a guest that is %s: %s', (strategy, phase, expected) =>
    expect(outcome('start', strategy, phase)).toBe(expected),
  );

  it('may hold the guest before it begins, which is asked of the controller', () => {
    const start = { action: 'Start', data: { paused: 'true' } };
    const requestsOf = (strategy: RunStrategy, given: VirtualMachineInstance | undefined): unknown => {
      const { machineStatus, ...rest } = planPower('start', machine(strategy), given, { paused: true });
      expect(rest).toEqual({});
      return (machineStatus as { status: { stateChangeRequests: unknown } }).status.stateChangeRequests;
    };
    expect(requestsOf('Halted', undefined)).toEqual([start]);
    expect(requestsOf('Manual', undefined)).toEqual([start]);
    expect(requestsOf('RerunOnFailure', guest('Succeeded'))).toEqual([{ action: 'Stop', uid: 'u1' }, start]);
  });

  it('asks for nothing that the template says already', () => {
    const halted = machine('Halted');
    halted.spec.template.spec = { startStrategy: 'Paused', domain: { devices: {} } };
    expect(planPower('start', halted, undefined, { paused: true })).toEqual({
      machine: { spec: { runStrategy: 'Always' } },
    });
  });
});

describe('stop', () => {
  it.each<[RunStrategy, VirtualMachineInstancePhase | undefined, number | undefined, string]>([
    ['Always', 'Running', undefined, 'Halted'],
    ['Always', undefined, undefined, 'Halted'],
    ['Always', 'Running', 0, 'Halted, grace 0'],
    ['Once', 'Running', undefined, 'Halted'],
    ['Manual', 'Running', undefined, 'Stop u1'],
    ['Manual', 'Running', 5, 'Stop u1, grace 5'],
    ['Manual', undefined, undefined, '409 VM is not running'],
    ['Manual', 'Succeeded', 0, '409 VM is not running'],
    ['RerunOnFailure', 'Running', undefined, 'Stop u1'],
    ['Halted', undefined, undefined, '409 VM is not running'],
    ['Halted', 'Running', undefined, '409 Halted only supports manual stop requests with a shorter graceperiod'],
    ['Halted', 'Running', 30, '409 Halted only supports manual stop requests with a shorter graceperiod'],
    ['Halted', 'Running', 3, 'grace 3'],
    ['Always', 'Running', -1, '400 gracePeriod has to be greater or equal to 0'],
  ])('%s with a guest that is %s, within %s: %s', (strategy, phase, gracePeriod, expected) =>
    expect(outcome('stop', strategy, phase, gracePeriod === undefined ? {} : { gracePeriod })).toBe(expected),
  );
});

describe('restart', () => {
  it.each<[RunStrategy, VirtualMachineInstancePhase | undefined, number | undefined, string]>([
    ['Always', 'Running', undefined, 'Stop u1, Start'],
    ['Manual', 'Running', 0, 'Stop u1, Start, grace 0'],
    ['RerunOnFailure', 'Running', undefined, 'Stop u1, Start'],
    ['Always', undefined, undefined, '409 VM is not running: Halted'],
    ['Halted', 'Running', undefined, '409 RunStrategy Halted does not support manual restart requests'],
    ['Once', 'Running', undefined, '409 RunStrategy Once does not support manual restart requests'],
    ['Always', 'Running', 3, '400 For force restart, only gracePeriod=0 is supported for now'],
    ['Always', 'Running', -3, '400 gracePeriod has to be greater or equal to 0'],
  ])('%s with a guest that is %s, within %s: %s', (strategy, phase, gracePeriodSeconds, expected) =>
    expect(outcome('restart', strategy, phase, gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds })).toBe(
      expected,
    ),
  );
});

describe('what was asked before', () => {
  const busy = machine('Manual', { stateChangeRequests: [{ action: 'Start' }] });

  it('is done first', () =>
    expect(() => planPower('start', busy, undefined, {})).toThrow(
      'unable to complete request: stop/start already underway',
    ));

  it('is overruled by a stop', () =>
    expect(planPower('stop', busy, guest('Running'), {}).machineStatus).toEqual({
      status: { stateChangeRequests: [{ action: 'Stop', uid: 'u1' }] },
    }));

  it('and failed holds nobody up', () => {
    const failed = machine('Manual', { startFailure: { consecutiveFailCount: 3 } });
    expect(planPower('start', failed, undefined, {}).machineStatus).toEqual({
      status: { stateChangeRequests: [{ action: 'Start' }], startFailure: null },
    });
  });
});

it('keeps to the field that the author used', () => {
  const { spec, ...rest } = machine('Always');
  const old = { ...rest, spec: { running: true, template: spec.template } };
  expect(planPower('stop', old, guest('Running'), {}).machine).toEqual({ spec: { running: false } });
});

it('does not start a machine whose guest went elsewhere, and says what can be done', () => {
  for (const strategy of ['Halted', 'Manual', 'RerunOnFailure', 'Always'] as const) {
    const away = machine(strategy, { rightToRun: { epoch: 3, grantedAway: true } });
    away.metadata.namespace = 'shop';
    expect(() => planPower('start', away, undefined, {})).toThrow(
      /went to another namespace or cluster; .*godwit reclaim box -n shop --i-have-fenced-the-other-side/,
    );
  }
});
