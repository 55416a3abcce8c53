import { errorMessage } from '../../api/error-message.ts';
import {
  type ChildProcess,
  type Clock,
  type Connection,
  type Connector,
  type Processes,
  type ProcessExit,
  type ProcessIdentity,
  type ProcessSpec,
  sleep,
} from '../../env/ports.ts';
import { LineSplitter } from '../qemu/line-splitter.ts';
import {
  type LauncherAnswer,
  type LauncherEnd,
  type LauncherOrder,
  LINE_BYTES_MAX,
  line,
  parseAnswer,
} from './wire.ts';

export interface LauncherProcessesOptions {
  readonly clock: Clock;
  readonly connector: Connector;
  /** The processes of this host, among which those of its pods are seen. */
  readonly processes: Processes;
  /** The socket of the launcher whose machine has its files in this directory. */
  readonly socketOf: (directory: string) => string;
}

/** The container of a launcher runs before the launcher listens. */
const LISTENING_MS = 30_000;
const AGAIN_MS = 100;
/** How long a process may take to be seen that was started: it is there already. */
const SEEN_MS = 5000;
/** A launcher does nothing else. */
const ANSWER_MS = 30_000;
/** Of a process that ended before it was seen. */
const ENDED: ProcessIdentity = { pid: 0, startedAt: 'ended' };

/**
 * Processes that are started in launcher pods, so that these bound what they use, and that are seen, and ended, as all others of the
 * host are. It is the launcher alone that knows how they ended.
 */
export class LauncherProcesses implements Processes {
  readonly isRoot = false;
  readonly #options: LauncherProcessesOptions;

  constructor(options: LauncherProcessesOptions) {
    this.#options = options;
  }

  /** Has it started by the launcher of its directory, which is its user, and knows its program and where its output goes. */
  async spawnDetached({ mark, arguments: args, directory }: ProcessSpec): Promise<ChildProcess> {
    const { clock, connector, socketOf } = this.#options;
    if (mark === undefined) throw new Error('a process of a pod is found by its mark');
    const path = socketOf(directory);
    const talk = await patiently(clock, () => Talk.open(connector, path));
    const answer = await talk.order(clock, { kind: 'start', arguments: args });
    if (answer?.kind === 'refused') throw new Error(answer.message);
    try {
      if (!answer) throw new Error('its launcher has ended');
      return { identity: await this.#seen(mark, directory, talk.exited), exited: talk.exited };
    } catch (error) {
      talk.close();
      // Nobody says any more whether it was started: then it is ended.
      const left = await this.findByArgument(mark, directory);
      if (left) await this.kill(left, 'SIGKILL');
      throw error;
    }
  }

  /** Nobody knows where its launcher is gone, or knows nothing of this. */
  async watch(directory: string): Promise<ProcessExit> {
    const { clock, connector, socketOf } = this.#options;
    try {
      const talk = await Talk.open(connector, socketOf(directory));
      await talk.order(clock, { kind: 'watch' });
      return await talk.exited;
    } catch {
      // It is as good as gone: whoever asks hears that nobody knows.
      return { code: undefined, signal: undefined };
    }
  }

  run(command: string, args: readonly string[]): Promise<string> {
    return this.#options.processes.run(command, args);
  }

  findByArgument(argument: string, directory?: string, pid?: number): Promise<ProcessIdentity | undefined> {
    return this.#options.processes.findByArgument(argument, directory, pid);
  }

  isRunning(process: ProcessIdentity): Promise<boolean> {
    return this.#options.processes.isRunning(process);
  }

  kill(process: ProcessIdentity, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    return this.#options.processes.kill(process, signal);
  }

  /** Its number is another one in the pod: it is found by its mark and its directory, unless it has ended already. */
  async #seen(mark: string, directory: string, exited: Promise<ProcessExit>): Promise<ProcessIdentity> {
    const { clock } = this.#options;
    const byMs = clock.now() + SEEN_MS;
    let hasEnded = false;
    void exited.then(() => (hasEnded = true));
    for (;;) {
      const identity = await this.findByArgument(mark, directory);
      if (identity) return identity;
      if (hasEnded) return ENDED;
      if (clock.now() >= byMs)
        throw new Error('the processes of other pods are not seen here: the agent needs hostPID');
      await sleep(clock, AGAIN_MS);
    }
  }
}

/** Has a launcher end, with its pod. Rejects where it does not answer, or has a machine. */
export async function endLauncher(connector: Connector, clock: Clock, path: string, end: LauncherEnd): Promise<void> {
  const talk = await Talk.open(connector, path);
  const answer = await talk.order(clock, { kind: 'end', ...end });
  talk.close();
  if (answer?.kind !== 'ending')
    throw new Error(answer?.kind === 'refused' ? answer.message : 'its launcher has ended');
}

/** Tries until somebody listens. */
async function patiently<T>(clock: Clock, attempt: () => Promise<T>): Promise<T> {
  const byMs = clock.now() + LISTENING_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (clock.now() >= byMs)
        throw new Error(`its launcher does not answer: ${errorMessage(error)}`, { cause: error });
      await sleep(clock, AGAIN_MS);
    }
  }
}

/** One order to a launcher, and what it says to that. */
class Talk {
  /** How the process ended that was started; nobody knows where the launcher is gone. */
  readonly exited: Promise<ProcessExit>;
  readonly #connection: Connection;
  /** Undefined where the launcher is gone without one. */
  readonly #answer: Promise<LauncherAnswer | undefined>;

  private constructor(
    connection: Connection,
    answer: Promise<LauncherAnswer | undefined>,
    exited: Promise<ProcessExit>,
  ) {
    this.#connection = connection;
    this.#answer = answer;
    this.exited = exited;
  }

  static async open(connector: Connector, path: string): Promise<Talk> {
    const lines = new LineSplitter(LINE_BYTES_MAX);
    let answered: (answer?: LauncherAnswer) => void = () => undefined;
    let exited: (exit: ProcessExit) => void = () => undefined;
    const answer = new Promise<LauncherAnswer | undefined>((resolve) => (answered = resolve));
    const exit = new Promise<ProcessExit>((resolve) => (exited = resolve));
    let connection: Connection | undefined;
    const hear = (text: string): void => {
      const said = parseAnswer(text);
      if (said.kind === 'exited') exited({ code: said.code, signal: said.signal });
      answered(said);
    };
    connection = await connector.connectUnix(path, {
      data: (bytes) => {
        try {
          for (const text of lines.take(bytes)) hear(text);
        } catch {
          // Whoever speaks like that is no launcher, and is listened to no more.
          connection?.close();
        }
      },
      closed: () => {
        answered();
        exited({ code: undefined, signal: undefined });
      },
    });
    return new Talk(connection, answer, exit);
  }

  /** Gives the order, and answers what is said to it; undefined where nothing is. */
  async order(clock: Clock, order: LauncherOrder): Promise<LauncherAnswer | undefined> {
    this.#connection.write(line(order));
    const timer = clock.setTimer(() => this.close(), ANSWER_MS);
    try {
      return await this.#answer;
    } finally {
      timer.cancel();
    }
  }

  close(): void {
    this.#connection.close();
  }
}
