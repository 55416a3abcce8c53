import { describe, expect, it } from 'vitest';
import { ApiError } from '../api/status.ts';
import { type PowerAction, planPower } from '../extension/subresources/power-requests.ts';
import { GUEST_ACTIONS, guestRefusal } from '../extension/subresources/guest-checks.ts';
import { RUN_STRATEGIES } from '../api/kubevirt/run-strategy.ts';
import { VIRTUAL_MACHINE_INSTANCE_PHASES } from '../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachine } from '../api/kubevirt/virtual-machine.ts';
import { UserError } from './failure.ts';
import { withRemedy } from './power-remedies.ts';

const SPEC = { domain: { devices: {} } };
const ACTIONS: readonly PowerAction[] = ['start', 'stop', 'restart'];

/** All that is refused of machines and guests in any state. */
function refusals(): ApiError[] {
  const refused: ApiError[] = [];
  const note = (attempt: () => unknown): void => {
    try {
      const answer = attempt();
      if (answer instanceof ApiError) refused.push(answer);
    } catch (error) {
      if (error instanceof ApiError) refused.push(error);
      else throw error;
    }
  };
  for (const phase of [undefined, ...VIRTUAL_MACHINE_INSTANCE_PHASES]) {
    const conditions = [{ type: 'Paused', status: 'True' }];
    const base = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'box' },
      spec: SPEC,
    };
    const guest = phase === undefined ? undefined : ({ ...base, status: { phase } } as VirtualMachineInstance);
    for (const runStrategy of RUN_STRATEGIES)
      for (const stateChangeRequests of [[], [{ action: 'Start' as const }]]) {
        const metadata = { name: 'box' };
        const machine: VirtualMachine = {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          metadata,
          spec: { runStrategy, template: { spec: SPEC } },
          status: { stateChangeRequests },
        };
        for (const action of ACTIONS) note(() => planPower(action, machine, guest, {}));
      }
    if (!guest) continue;
    for (const action of GUEST_ACTIONS)
      for (const each of [guest, { ...guest, status: { ...guest.status, conditions } } as VirtualMachineInstance])
        note(() => guestRefusal(action, each));
  }
  return refused.filter(({ code }) => code === 409);
}

describe('what is refused of a machine', () => {
  it('is told with what to do, in one sentence', () => {
    const all = refusals();
    expect(all.length).toBeGreaterThan(50);
    const commands = /^(?!.*reset|.*VMI is paused)/;
    const bare = all
      .filter(({ message }) => commands.test(message))
      .filter((error) => withRemedy(error, 'box') === error);
    expect([...new Set(bare.map(({ message }) => message))]).toEqual([]);
    const [first] = all;
    expect((withRemedy(new ApiError(409, 'Conflict', 'VM is already running'), 'box') as UserError).message).toBe(
      "VM is already running; 'godwit restart box' starts it anew",
    );
    expect(withRemedy(first, 'box')).toBeInstanceOf(UserError);
  });

  it('is nothing else than that', () => {
    const other = new ApiError(403, 'Forbidden', 'VM is already running');
    expect(withRemedy(other, 'box')).toBe(other);
    const unknown = new ApiError(409, 'Conflict', 'somebody else wrote');
    expect(withRemedy(unknown, 'box')).toBe(unknown);
  });
});
