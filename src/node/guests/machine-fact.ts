import { type CopyState, isPostCopy } from '../../api/copy-state.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { MachineStatus } from '../../hypervisor/hypervisor.ts';
import type { MachineFact } from '../../migration/right-to-run/view.ts';

/** What the protocol of the right to run makes of what a machine says, and of its migration, where it has one. */
export function machineFact(status: MachineStatus, migration?: CopyState): MachineFact {
  switch (status) {
    case 'running':
      return 'running';
    case 'paused':
    case 'disk-error':
    case 'failed':
      return migration !== undefined && isPostCopy(migration) ? 'postcopy' : 'paused';
    case 'incoming':
      return 'inmigrate';
    case 'finished-migrate':
      return 'postmigrate';
    case 'shut-down':
      // It is about to end, and must not be continued: nothing is concluded before it has.
      return 'unknown';
    default:
      return unreachable(status);
  }
}
