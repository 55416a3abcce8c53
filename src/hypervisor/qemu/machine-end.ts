import type { ProcessExit } from '../../env/ports.ts';
import type { MachineEnd } from '../hypervisor.ts';

/** Lines of QEMU's log that are worth repeating. */
const LOG_LINES_MAX = 20;

/** What is known about an end. */
export interface Evidence {
  readonly exit: ProcessExit;
  readonly hasGuestShutDown: boolean;
  readonly wasToldToQuit: boolean;
  /** The end of QEMU's log. */
  readonly log: string;
}

/** The last whole lines of a text, of which the first may be cut off. */
function lastLines(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .slice(-LOG_LINES_MAX);
}

/** Why a QEMU is gone. */
export function machineEnd({ exit, hasGuestShutDown, wasToldToQuit, log }: Evidence): MachineEnd {
  const lines = lastLines(log);
  const last = lines.at(-1);
  const says = last === undefined ? '' : `; its last words: ${last}`;
  const { code, signal } = exit;
  // Comes first: QEMU outlives its guest, and may well be killed then.
  if (hasGuestShutDown) return { reason: 'GuestShutDown', message: 'the guest shut down', log: lines };
  if (signal !== undefined) return { reason: 'Killed', message: `QEMU was killed by ${signal}${says}`, log: lines };
  if (code !== undefined && code !== 0)
    return { reason: 'Failed', message: `QEMU ended with exit code ${code}${says}`, log: lines };
  if (wasToldToQuit) return { reason: 'Quit', message: 'QEMU was told to quit', log: lines };
  // QEMU takes these signals for an order, and ends well; its log names them.
  const order = /terminating on signal (\d+)/.exec(last ?? '');
  if (order) return { reason: 'Killed', message: `QEMU was ended by signal ${order[1]}${says}`, log: lines };
  if (code === 0) return { reason: 'Quit', message: `QEMU ended by itself${says}`, log: lines };
  return { reason: 'Unknown', message: `QEMU is gone, and nobody saw how${says}`, log: lines };
}
