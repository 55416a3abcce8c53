/**
 * What runs for as long as its process does: informers, controllers, recorders, and the manager that holds them
 * together.
 */

export interface Service {
  /** Names it in logs and errors. */
  readonly name: string;
  /**
   * Runs until the signal aborts, and resolves only when nothing of it is under way any more. A rejection is fatal to
   * its manager, and so is ending early.
   */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Resolves once it has caught up with the server; it then need not be the leader to run. Others of the same manager
   * start after it.
   */
  readonly synced?: Promise<void>;
  /** False for what every replica may do at once. Where absent, only those that have nothing to sync need to lead. */
  readonly needsLeadership?: boolean;
}
