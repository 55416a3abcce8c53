import type { VirtualMachine } from './virtual-machine.ts';

/** What users asked for and controllers have not done yet. */
export type StateChangeRequest = NonNullable<NonNullable<VirtualMachine['status']>['stateChangeRequests']>[number];

/** The data of a request to start a guest paused. */
export const PAUSED_START = { paused: 'true' } as const;

/** Whether the next guest of a machine is to start paused. Requests are served in order: only the first one counts. */
export function isPausedStartAsked({ status }: VirtualMachine): boolean {
  const first = status?.stateChangeRequests?.[0];
  return first?.action === 'Start' && first.data?.['paused'] === PAUSED_START.paused;
}
