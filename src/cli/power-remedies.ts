import { ApiError } from '../api/status.ts';
import { UserError } from './failure.ts';

/** What somebody can do where a machine is not in the state for what they ask, by the words of the refusal. */
const REMEDIES: readonly (readonly [words: string, remedy: string])[] = [
  ['already running', "'godwit restart VM' starts it anew"],
  ['VM is not running', "'godwit start VM' starts it"],
  ['VMI is not running', "'godwit why VM' says how it is"],
  ['already paused', "'godwit unpause VM' lets it go on"],
  ['VMI is not paused', 'it runs, and there is nothing to do'],
  ['already underway', "wait until that is done; 'godwit why VM' says how it is"],
  ['shorter graceperiod', "it is being stopped; 'godwit stop VM --force --grace-period 0' cuts it off"],
  ['from failed state', "it is started again by itself; 'godwit why VM' says when"],
  ['RunStrategy Halted does not support', "'godwit start VM' starts it"],
  ['does not support manual start', "its run strategy starts it by itself; 'godwit why VM' says how it is"],
  ['it has to leave node', "'godwit why VM' says which one it has to leave, and why"],
  ['is terminating: it has to move', "'godwit why VM' says how far that is"],
  ['does not support manual restart', "'godwit stop VM' ends it for good; another run strategy would start it again"],
];

/** A refusal with what to do about it, in one sentence; other errors as they are. */
export function withRemedy(error: unknown, name: string): unknown {
  if (!(error instanceof ApiError) || error.code !== 409) return error;
  const remedy = REMEDIES.find(([words]) => error.message.includes(words))?.[1];
  if (remedy === undefined) return error;
  return new UserError(`${error.message.replace(/\.$/, '')}; ${remedy.replaceAll('VM', () => name)}`, { cause: error });
}
