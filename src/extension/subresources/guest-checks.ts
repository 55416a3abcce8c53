import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { type ApiError, conflict, forbiddenRequest } from '../../api/status.ts';
import { unreachable } from '../../api/unreachable.ts';
import { findCondition, isConditionTrue } from '../../kube/conditions.ts';

/** Whether a guest is in a state in which something can be done with it; in KubeVirt's words. Pure. */

const REFERENCE = { group: 'kubevirt.io', plural: 'virtualmachineinstance' };

/** What agents do with guests when they are told to. */
export const GUEST_ACTIONS = ['pause', 'unpause', 'softreboot', 'reset'] as const;

export type GuestAction = (typeof GUEST_ACTIONS)[number];

/** Why something cannot be done with a guest now; undefined where it can. */
export function guestRefusal(
  action: GuestAction | 'console' | 'guestosinfo',
  guest: VirtualMachineInstance,
): ApiError | undefined {
  const { status, spec, metadata } = guest;
  const refuse = (detail: string): ApiError => conflict(REFERENCE, metadata.name ?? '', detail);
  if (status?.phase !== 'Running') return refuse(action === 'reset' ? nonRunning(guest) : 'VMI is not running');
  const isPaused = isConditionTrue(status.conditions, 'Paused');
  switch (action) {
    case 'pause':
      if (isProbed(spec))
        return forbiddenRequest(
          REFERENCE,
          metadata.name ?? '',
          'Pausing VMIs with a non-GuestAgentPing LivenessProbe is not supported',
        );
      return isPaused ? refuse('VMI is already paused') : undefined;
    case 'unpause':
      return isPaused ? undefined : refuse('VMI is not paused');
    case 'softreboot':
      return isPaused ? refuse('VMI is paused') : undefined;
    case 'guestosinfo':
      return findCondition(status.conditions, 'AgentConnected')
        ? undefined
        : refuse('VMI does not have guest agent connected');
    case 'reset':
    case 'console':
      return undefined;
    default:
      return unreachable(action);
  }
}

function nonRunning({ status }: VirtualMachineInstance): string {
  return `Failed to reset non-running VMI with phase ${status?.phase ?? ''}`;
}

function isProbed({ livenessProbe }: VirtualMachineInstance['spec']): boolean {
  return livenessProbe !== undefined && livenessProbe !== null && !Object.hasOwn(livenessProbe, 'guestAgentPing');
}
