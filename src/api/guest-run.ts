/** A guest's stay on a node: what one launcher pod has executed of it, as the node's agent tells whoever reads logs. */
export interface GuestRun {
  readonly podUID: string;
  readonly guestUID: string;
  /** When its machine was about to be started, in ms since 1970, by the clock of that node. */
  readonly startedAtMs: number;
  /** The virtual machine whose epoch the next field is; absent where the node has forgotten it. */
  readonly machineUID?: string;
  /** Of the right to run: whoever had it later has a higher one, and who took it over from this run has the next. */
  readonly epoch?: number;
  /** Whether the guest may say more there. */
  readonly isLive: boolean;
}

/** Says at which byte of a run's log an answer begins, so that whoever loses the connection can go on from there. */
export const LOG_OFFSET_HEADER = 'x-godwit-log-offset';
