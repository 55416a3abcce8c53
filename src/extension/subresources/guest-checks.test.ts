import { describe, expect, it } from 'vitest';
import type {
  VirtualMachineInstance,
  VirtualMachineInstancePhase,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { guestRefusal } from './guest-checks.ts';

type Action = Parameters<typeof guestRefusal>[0];

function guest(
  phase: VirtualMachineInstancePhase,
  conditions: readonly string[],
  spec: object,
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'box' },
    spec: { domain: { devices: {} }, ...spec },
    status: { phase, conditions: conditions.map((type) => ({ type, status: 'True' })) },
  };
}

describe('what can be done with a guest', () => {
  it.each<[Action, VirtualMachineInstancePhase, readonly string[], object, string | undefined]>([
    ['pause', 'Running', [], {}, undefined],
    ['pause', 'Running', ['Paused'], {}, '409 VMI is already paused'],
    ['pause', 'Scheduled', [], {}, '409 VMI is not running'],
    [
      'pause',
      'Running',
      [],
      { livenessProbe: { tcpSocket: { port: 80 } } },
      '403 Pausing VMIs with a non-GuestAgentPing LivenessProbe is not supported',
    ],
    ['pause', 'Running', [], { livenessProbe: { guestAgentPing: {} } }, undefined],
    ['unpause', 'Running', ['Paused'], {}, undefined],
    ['unpause', 'Running', [], {}, '409 VMI is not paused'],
    ['softreboot', 'Running', [], {}, undefined],
    ['softreboot', 'Running', ['Paused'], {}, '409 VMI is paused'],
    ['reset', 'Running', ['Paused'], {}, undefined],
    ['reset', 'Scheduling', [], {}, '409 Failed to reset non-running VMI with phase Scheduling'],
    ['console', 'Running', ['Paused'], {}, undefined],
    ['console', 'Succeeded', [], {}, '409 VMI is not running'],
    ['guestosinfo', 'Running', ['AgentConnected'], {}, undefined],
    ['guestosinfo', 'Running', [], {}, '409 VMI does not have guest agent connected'],
  ])('%s while it is %s with %j and %j: %s', (action, phase, conditions, spec, expected) => {
    const refusal = guestRefusal(action, guest(phase, conditions, spec));
    const said = refusal && `${refusal.code} ${refusal.message.replace(/^.*"box"(?: is forbidden)?: /, '')}`;
    expect(said).toBe(expected);
  });
});
