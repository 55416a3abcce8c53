import { type GuestEvent, HypervisorError, type MachineEvent, type MachineStatus } from '../hypervisor.ts';
import { migrationEvent } from './migration-progress.ts';
import { isRecord, type QmpEvent } from './qmp-message.ts';

/** QEMU's words in ours. */

const STATUSES: ReadonlyMap<unknown, MachineStatus> = new Map([
  ['running', 'running'],
  ['paused', 'paused'],
  ['prelaunch', 'paused'],
  ['debug', 'paused'],
  ['suspended', 'paused'],
  ['save-vm', 'paused'],
  ['restore-vm', 'paused'],
  ['finish-migrate', 'paused'],
  ['colo', 'paused'],
  ['inmigrate', 'incoming'],
  ['postmigrate', 'finished-migrate'],
  ['shutdown', 'shut-down'],
  ['io-error', 'disk-error'],
  ['internal-error', 'failed'],
  ['guest-panicked', 'failed'],
  ['watchdog', 'failed'],
]);

const EVENTS: ReadonlyMap<string, GuestEvent['kind']> = new Map([
  ['STOP', 'stopped'],
  ['RESUME', 'resumed'],
  ['RESET', 'reset'],
  ['GUEST_PANICKED', 'guest-panicked'],
  ['BLOCK_IO_ERROR', 'disk-error'],
]);

/** The status in an answer to `query-status`. */
export function machineStatus(answer: unknown): MachineStatus {
  const status = isRecord(answer) ? STATUSES.get(answer['status']) : undefined;
  if (status) return status;
  throw new HypervisorError('Unreachable', `QEMU is in a state that is not known: ${JSON.stringify(answer)}`);
}

/** The event that others than QEMU's own driver care about; undefined for the rest. */
export function machineEvent(event: QmpEvent): MachineEvent | undefined {
  const { name, data, atMs } = event;
  if (name === 'SHUTDOWN') return data['reason'] === 'guest-shutdown' ? { kind: 'guest-shut-down', atMs } : undefined;
  const kind = EVENTS.get(name);
  return kind ? { kind, atMs } : migrationEvent(event);
}
