import type { GuestRun } from '../../api/guest-run.ts';
import type { Connection, ConnectionHandlers } from '../../env/ports.ts';
import type { GuestAgentInfo } from '../guest-agent/guest-agent-info.ts';

/** What others may ask of the guests on this node, through the agent's own server. Rejects with an ApiError. */
export interface GuestAccess {
  /** Holds the guest where it is, and says so in its conditions. Once is as good as twice. */
  pause(namespace: string, name: string): Promise<void>;
  unpause(namespace: string, name: string): Promise<void>;
  /** Presses the power button; the guest's machine is started anew by whoever keeps it. */
  softReboot(namespace: string, name: string): Promise<void>;
  /** As the reset button: the guest begins anew in the same machine. */
  reset(namespace: string, name: string): Promise<void>;
  /** What the agent inside the guest says of it. */
  guestInfo(namespace: string, name: string): Promise<GuestAgentInfo>;
  /** The serial console, for one at a time: who comes later takes it over, and who had it hears `closed`. */
  openConsole(namespace: string, name: string, handlers: ConnectionHandlers): Promise<Connection>;
  /** Every file on this node with what the guest's serial port has said, oldest first, past runs included. */
  serialLogs(namespace: string, name: string): Promise<readonly SerialLog[]>;
  /** The guest's stays on this node, oldest first; one that only waited for the guest is none. */
  runs(namespace: string, name: string): Promise<readonly GuestRun[]>;
}

export interface SerialLog {
  readonly podUID: string;
  readonly path: string;
  /** Whether more may come. */
  readonly isLive: boolean;
}
