import { describe, expect, it, vi } from 'vitest';
import type { ConnectionHandlers, HostFiles } from '../../env/ports.ts';
import { ManualClock } from '../../env/test.ts';
import {
  type GuestEvent,
  HypervisorError,
  type Machine,
  type MachineEnd,
  type MachineEvent,
  type MachineRun,
} from '../hypervisor.ts';
import type { MachineSpec } from '../machine.ts';
import { NO_MIGRATION } from '../migration.fixture.ts';
import { probeAccelerator } from './probe-accelerator.ts';

/** What happens once the machine of the probe runs. */
interface Stage {
  say(text: string): void;
  tell(kind: GuestEvent['kind']): void;
  end(end: MachineEnd): void;
  readonly clock: ManualClock;
}

/** What a former probe has left. */
type Leftover = (clock: ManualClock) => Promise<Pick<Machine, 'kill' | 'detach'> | undefined>;

const RUN = { directory: '/run/probe', instance: 'probe' };
const KILLED: MachineEnd = { reason: 'Killed', message: '', log: [] };

async function probe(
  play: (stage: Stage) => void,
  startError?: Error,
  leftover: Leftover = () => Promise.resolve(undefined),
  killed: (clock: ManualClock) => Promise<MachineEnd> = () => Promise.resolve(KILLED),
): Promise<{ verdict: unknown; isKilled: boolean; isLetGo: boolean }> {
  const clock = new ManualClock();
  let handlers: ConnectionHandlers | undefined;
  let listener: (event: MachineEvent) => void = () => undefined;
  let end: (end: MachineEnd) => void = () => undefined;
  let [isKilled, isLetGo] = [false, false];
  const stage: Stage = {
    say: (text) => handlers?.data(Buffer.from(text)),
    tell: (kind) => listener({ kind, atMs: undefined }),
    end: (how) => end(how),
    clock,
  };
  const unused = (): never => expect.unreachable();
  const machine: Machine = {
    run: RUN,
    ended: new Promise((resolve) => (end = resolve)),
    migration: NO_MIGRATION,
    continue: () => Promise.resolve(play(stage)),
    kill: () => {
      isKilled = true;
      return killed(clock);
    },
    onEvent: (given) => {
      listener = given;
      return () => undefined;
    },
    openConsole: (given) => {
      handlers = given;
      return Promise.resolve({ write: () => undefined, close: () => undefined });
    },
    status: unused,
    stop: unused,
    hold: unused,
    powerDown: unused,
    reset: unused,
    quit: unused,
    detach: () => {
      isLetGo = true;
    },
  };
  const written = new Map<string, Uint8Array>();
  const hostFiles: HostFiles = {
    makePrivateDirectory: () => Promise.resolve(),
    writePrivate: (path, bytes) => Promise.resolve(void written.set(path, bytes)),
    readEnd: unused,
  };
  const start = (spec: MachineSpec, run: MachineRun): Promise<Machine> => {
    expect(run).toBe(RUN);
    expect(spec.accelerator).toBe('kvm');
    expect([...(written.get(spec.disks?.[0]?.path ?? '')?.slice(510, 512) ?? [])]).toEqual([0x55, 0xaa]);
    return startError ? Promise.reject(startError) : Promise.resolve(machine);
  };
  const adopt = (run: MachineRun): Promise<Machine | undefined> => {
    expect(run).toBe(RUN);
    return leftover(clock) as Promise<Machine | undefined>;
  };
  const hypervisor = { start, adopt };
  const verdict = await probeAccelerator({
    clock,
    hypervisor,
    hostFiles,
    user: undefined,
    run: RUN,
    machineType: 'pc-q35-7.2',
  });
  return { verdict, isKilled, isLetGo };
}

/** Ends nothing in all the time that it is given. */
function never(clock: ManualClock): Promise<MachineEnd> {
  clock.advance(45_000);
  return new Promise(() => undefined);
}

describe('the probe of accelerators', () => {
  it('trusts KVM when the guest has spoken, in however many pieces', async () => {
    const { verdict, isKilled, isLetGo } = await probe((stage) => {
      stage.say('SeaBIOS\r\ngod');
      stage.say('wit\n');
    });
    expect(verdict).toMatchObject({ accelerator: 'kvm' });
    expect({ isKilled, isLetGo }).toEqual({ isKilled: true, isLetGo: false });
  });

  it.each<[string, (stage: Stage) => void, string]>([
    ['the processor fails', (stage) => stage.tell('stopped'), 'the processor of the guest failed'],
    ['nothing is heard', (stage) => stage.clock.advance(10_000), 'said nothing for 10 s'],
    ['only the firmware is heard', (stage) => (stage.say('SeaBIOS'), stage.clock.advance(10_000)), 'said nothing'],
    [
      'the machine dies',
      (stage) => stage.end({ reason: 'Killed', message: 'QEMU was killed by SIGSEGV', log: [] }),
      'SIGSEGV',
    ],
  ])('does without KVM when %s', async (_, play, reason) => {
    const { verdict, isKilled } = await probe(play);
    expect(verdict).toMatchObject({ accelerator: 'tcg', reason: expect.stringContaining(reason) as string });
    expect(isKilled).toBe(true);
  });

  it('ends the machine of a former one whose agent was killed, before it starts its own', async () => {
    const said: string[] = [];
    const kill = (): ReturnType<Machine['kill']> => {
      said.push('killed');
      return Promise.resolve(KILLED);
    };
    const play = (stage: Stage): void => {
      said.push('started');
      stage.say('godwit\n');
    };
    await probe(play, undefined, () => Promise.resolve({ kill, detach: () => expect.unreachable() }));
    expect(said).toEqual(['killed', 'started']);
  });

  const refused = (): ReturnType<Machine['kill']> => Promise.reject(new Error('EPERM'));
  it.each<[string, ((clock: ManualClock) => Machine['kill']) | Error, string, number]>([
    ['cannot be looked for', new Error('/proc cannot be read'), '/proc cannot be read', 0],
    ['cannot be ended', () => refused, 'EPERM', 1],
    ['does not end', (clock) => () => never(clock), 'it goes on after 45 s', 1],
  ])('does without KVM when the machine of a former one %s, and lets go of it', async (_, left, reason, times) => {
    const detach = vi.fn<() => void>();
    const leftover: Leftover = (clock) =>
      left instanceof Error ? Promise.reject(left) : Promise.resolve({ kill: left(clock), detach });
    const { verdict } = await probe(() => expect.unreachable(), undefined, leftover);
    expect(detach).toHaveBeenCalledTimes(times);
    const problem = `the machine of a former probe could not be ended: ${reason}`;
    expect(verdict).toEqual({ accelerator: 'tcg', reason: `KVM does not work: ${problem}` });
  });

  it('lets go of the machine of a former one that is found too late', async () => {
    let find = (_machine: Pick<Machine, 'kill' | 'detach'>): void => undefined;
    const { verdict } = await probe(
      () => expect.unreachable(),
      undefined,
      (clock) => {
        clock.advance(45_000);
        return new Promise((resolve) => (find = resolve));
      },
    );
    expect(verdict).toMatchObject({ accelerator: 'tcg', reason: expect.stringContaining('it goes on after 45 s') });
    const detach = vi.fn<() => void>();
    find({ kill: () => expect.unreachable(), detach });
    await vi.waitFor(() => expect(detach).toHaveBeenCalledOnce());
  });

  it('believes what it has heard of a machine that does not end, and lets go of it', async () => {
    const { verdict, isLetGo } = await probe((stage) => stage.say('godwit\n'), undefined, undefined, never);
    expect(verdict).toMatchObject({ accelerator: 'kvm' });
    expect(isLetGo).toBe(true);
  });

  it('does without KVM when the machine does not even start', async () => {
    const { verdict } = await probe(() => undefined, new HypervisorError('StartFailed', 'no /dev/kvm'));
    expect(verdict).toEqual({ accelerator: 'tcg', reason: 'KVM does not work: no /dev/kvm' });
  });
});
