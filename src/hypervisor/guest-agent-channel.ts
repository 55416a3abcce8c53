import type { Connection, ConnectionHandlers } from '../env/ports.ts';

/** The line between a host and the agent inside a guest. Whatever comes out of it is the guest's word, and no more. */
export interface GuestAgentChannel {
  /** Whether somebody in the guest has the other end open. */
  isOpen(): Promise<boolean>;
  /** Calls back when somebody in the guest opens or closes the other end, until the answer is called. */
  onChange(listener: (isOpen: boolean) => void): () => void;
  /** Takes this end, for one at a time. */
  connect(handlers: ConnectionHandlers): Promise<Connection>;
}
