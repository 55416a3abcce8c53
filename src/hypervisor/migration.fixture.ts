import { HypervisorError } from './hypervisor.ts';
import type { MachineMigration } from './migration.ts';

const refuse = (): Promise<never> => Promise.reject(new HypervisorError('Refused', 'this machine never migrates'));

/** The migration of a machine that only pretends to be one. */
export const NO_MIGRATION: MachineMigration = {
  ramBytes: refuse,
  listen: refuse,
  listenLocally: refuse,
  listenAgain: refuse,
  closeDisks: refuse,
  announce: refuse,
  startMirrors: refuse,
  mirrors: refuse,
  finishMirrors: refuse,
  dropMirrors: refuse,
  start: refuse,
  setLimits: refuse,
  progress: () =>
    Promise.resolve({
      state: 'none',
      message: undefined,
      memory: undefined,
      downtimeMs: undefined,
      totalMs: 0,
      throttlePercent: 0,
    }),
  switchOver: refuse,
  cancel: refuse,
  startPostCopy: refuse,
  pausePostCopy: refuse,
  resumePostCopy: refuse,
};
