import { describe, expect, it } from 'vitest';
import { ApiError } from '../../api/status.ts';
import type { MachineStatus } from '../../hypervisor/hypervisor.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { JournaledStanding } from '../../migration/right-to-run/journal.ts';
import type { MachineFact } from '../../migration/right-to-run/view.ts';
import type { GuestNote, GuestNotes } from './guest-notes.ts';
import type { Machines } from './machines.ts';
import { NodeGuestAccess } from './node-guest-access.ts';
import type { Surroundings } from './surroundings.ts';

interface Played {
  /** What the journal says; nothing where absent. */
  readonly standing?: JournaledStanding;
  /** How the pod's machine is found when somebody looks for it. */
  readonly fact?: MachineFact;
  /** Whether the agent has it in hand already. */
  readonly isHeld?: boolean;
  readonly hasEnded?: boolean;
  readonly hasPod?: boolean;
}

/** What is told of one stay of a guest: the run, and whether more of its log is waited for. */
async function told(played: Played): Promise<{ run: object | undefined; isLive: boolean | undefined }> {
  const note: GuestNote = {
    podUID: 'pod',
    podName: 'launcher',
    namespace: 'shop',
    name: 'web',
    guestUID: 'guest',
    atMs: 7,
    ...(played.hasEnded ? { end: { reason: 'Killed', message: '', log: [] } } : {}),
  };
  const { standing, fact = 'dead', isHeld = false, hasPod = false } = played;
  const access = new NodeGuestAccess({
    surroundings: { knowsPod: () => hasPod } as unknown as Surroundings,
    machines: { get: () => (isHeld ? {} : undefined), look: async () => ({ fact }) } as unknown as Machines,
    notes: { of: () => [note], keptLog: () => undefined } as unknown as GuestNotes,
    journal: async () => ({
      vmOf: () => (standing ? 'vm' : undefined),
      standing: () => standing ?? { kind: 'none' },
    }),
    serialLogOf: () => '/log',
  });
  const [run] = await access.runs('shop', 'web');
  const [log] = await access.serialLogs('shop', 'web');
  return { run, isLive: log?.isLive };
}

const runner = (podUID: string) => ({ node: 'n', nodeUID: 'u', podUID });
const attempt = { epoch: 3, source: runner('pod'), target: runner('other') } as Attempt;
const holding = { kind: 'holding', epoch: 4, mustContinue: false, isCompleted: false } as const;
const run = (epoch: number | undefined, isLive: boolean): object => ({
  podUID: 'pod',
  guestUID: 'guest',
  startedAtMs: 7,
  ...(epoch === undefined ? {} : { machineUID: 'vm', epoch }),
  isLive,
});

describe('the stay of a guest', () => {
  it.each<[string, Played, object | undefined, boolean]>([
    ['that runs', { standing: holding, isHeld: true }, run(4, true), true],
    ['whose machine a former agent started', { standing: holding, fact: 'running' }, run(4, true), true],
    ['whose machine does not answer', { standing: holding, fact: 'unknown' }, run(4, true), true],
    ['whose machine has ended', { standing: holding, hasEnded: true }, run(4, false), false],
    ['that is about to begin', { standing: { kind: 'starting', epoch: 1 } }, run(1, true), true],
    ['that failed to begin', { standing: { kind: 'starting', epoch: 1 }, hasEnded: true }, run(1, false), false],
    [
      'that is being given away',
      { standing: { kind: 'granted', attempt, isPostCopy: true }, isHeld: true },
      run(3, true),
      true,
    ],
    ['that has gone', { standing: { kind: 'ended', epoch: 3, givenTo: runner('other') } }, run(3, false), false],
    ['that may come', { standing: { kind: 'receiving', attempt }, isHeld: true }, undefined, true],
    ['that did not come', { standing: { kind: 'refused', attempt }, hasEnded: true }, undefined, false],
    ['that was noted just now', { hasPod: true }, undefined, false],
    ['that the journal has forgotten', {}, run(undefined, false), false],
  ])('%s', async (_name, played, expected, isLive) => {
    expect(await told(played)).toEqual({ run: expected, isLive });
  });
});

describe('a guest that is commanded', () => {
  /** What its machine was told, or why nothing. */
  async function commanded(
    command: 'pause' | 'unpause' | 'reset',
    played: { readonly standing: JournaledStanding; readonly status: MachineStatus; readonly successor?: boolean },
  ): Promise<string> {
    let heard = 'nothing';
    const machine = {
      status: async () => played.status,
      stop: async () => void (heard = 'stop'),
      continue: async () => void (heard = 'continue'),
      reset: async () => void (heard = 'reset'),
    };
    const rightToRun = { epoch: 4, holder: runner('pod'), ...(played.successor ? { successor: runner('other') } : {}) };
    const access = new NodeGuestAccess({
      surroundings: {
        runningGuest: () => ({ metadata: { name: 'web' }, status: { phase: 'Running', rightToRun } }),
      } as unknown as Surroundings,
      machines: { get: () => machine, look: async () => ({ fact: 'running' }) } as unknown as Machines,
      notes: {} as GuestNotes,
      journal: async () => ({ vmOf: () => 'vm', standing: () => played.standing }),
      serialLogOf: () => '/log',
    });
    try {
      await access[command]('shop', 'web');
      return heard;
    } catch (error) {
      expect(heard).toBe('nothing');
      return error instanceof ApiError ? String(error.code) : String(error);
    }
  }
  const reserved = { ...holding, reserved: attempt };
  const granted = { kind: 'granted', attempt, isPostCopy: false } as const;

  it.each<['pause' | 'unpause' | 'reset', Parameters<typeof commanded>[1], string]>([
    ['pause', { standing: holding, status: 'running' }, 'stop'],
    ['pause', { standing: reserved, status: 'running' }, '409'],
    ['unpause', { standing: holding, status: 'paused' }, 'continue'],
    ['unpause', { standing: holding, status: 'finished-migrate' }, 'continue'],
    ['unpause', { standing: holding, status: 'paused', successor: true }, '409'],
    // The record is late, or was restored: the guest may run elsewhere by now.
    ['unpause', { standing: granted, status: 'finished-migrate' }, '409'],
    ['unpause', { standing: { kind: 'none' }, status: 'paused' }, '409'],
    ['reset', { standing: reserved, status: 'running' }, 'reset'],
    ['reset', { standing: reserved, status: 'finished-migrate' }, '409'],
    ['reset', { standing: holding, status: 'paused' }, 'reset'],
  ])('%s, %j: %s', async (command, played, expected) => {
    expect(await commanded(command, played)).toBe(expected);
  });
});
