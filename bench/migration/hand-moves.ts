import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { realConnector } from '../../src/env/real-connector.ts';
import { realClock } from '../../src/env/real.ts';
import { QmpClient } from '../../src/hypervisor/qemu/qmp.ts';
import { SerialTimes } from '../../test/support/serial-times.ts';
import { type LearntCommandLine, runDirectory } from '../learnt-command-line.ts';
import type { Move } from './move.ts';
import type { HandTls } from './tls.ts';
import { until } from './until.ts';

/** As much as numbers of JSON can say: no limit. */
const UNLIMITED = Number.MAX_SAFE_INTEGER;

interface Running {
  readonly place: string;
  readonly child: ChildProcess;
  readonly monitor: QmpClient;
  /** The last word on its migration. */
  readonly verdict: { status?: string };
}

export interface HandMovesOptions {
  readonly learnt: LearntCommandLine;
  /** Where they run; nobody else does. */
  readonly directory: string;
  readonly firstPort: number;
  readonly tls?: HandTls | undefined;
}

/**
 * One guest that goes from QEMU to QEMU with nothing around them: a target that goes on by itself, and the fewest commands
 * that do it. What all that Godwit does about a move is compared with.
 */
export class HandMoves {
  readonly #options: HandMovesOptions;
  readonly #times: SerialTimes;
  #started = 0;
  #port: number;
  #current: Running | undefined;

  constructor(options: HandMovesOptions) {
    this.#options = options;
    this.#port = options.firstPort;
    this.#times = new SerialTimes(options.directory);
  }

  /** Starts the guest, and waits until it has spoken. */
  async start(): Promise<void> {
    const started = await this.#spawn();
    this.#current = started;
    await until(() => this.#times.firstIn(started.place), 'the guest by hand does not speak');
  }

  /** The process that the guest is in. */
  get pid(): number {
    return this.#current?.child.pid ?? 0;
  }

  /** Moves it once, over so many channels besides the first; 0 for that alone. */
  async move(channels: number): Promise<Move> {
    const source = this.#current;
    const { boot = '' } = this.#times.firstIn(source?.place ?? '') ?? {};
    if (!source) throw new Error('there is no guest to move');
    const askedMs = performance.now();
    const target = await this.#spawn('-incoming', 'defer');
    const uri = `tcp:127.0.0.1:${this.#port++}`;
    await this.#prepare(target.monitor, 'server', channels);
    await this.#prepare(source.monitor, 'client', channels);
    await source.monitor.execute('migrate-set-parameters', { 'max-bandwidth': UNLIMITED });
    await target.monitor.execute('migrate-incoming', { uri });
    await source.monitor.execute('migrate', { uri });
    for (const { verdict } of [source, target]) await until(() => isOver(verdict.status), 'a migration does not end');
    const settledMs = performance.now() - askedMs;
    const { atMs } = await until(() => this.#times.firstIn(target.place), 'the guest is lost');
    await end(source);
    this.#current = target;
    return { totalMs: atMs - askedMs, settledMs, downtimeMs: this.#times.silencesMs(boot).at(-1) ?? Number.NaN };
  }

  async close(): Promise<void> {
    this.#times.stop();
    if (this.#current) await end(this.#current);
  }

  async #prepare(monitor: QmpClient, endpoint: 'client' | 'server', channels: number): Promise<void> {
    const states = { events: true, 'return-path': true, multifd: channels > 0 };
    await monitor.execute('migrate-set-capabilities', {
      capabilities: Object.entries(states).map(([capability, state]) => ({ capability, state })),
    });
    if (channels > 0) await monitor.execute('migrate-set-parameters', { 'multifd-channels': channels });
    const { tls } = this.#options;
    if (!tls) return;
    const id = `by-hand-${this.#started}`;
    const { directory: dir, targetName } = tls;
    await monitor.execute('object-add', { 'qom-type': 'tls-creds-x509', id, dir, endpoint, 'verify-peer': true });
    const hostname = endpoint === 'client' ? { 'tls-hostname': targetName } : {};
    await monitor.execute('migrate-set-parameters', { 'tls-creds': id, ...hostname });
  }

  async #spawn(...more: readonly string[]): Promise<Running> {
    const { learnt, directory } = this.#options;
    const place = String(this.#started++);
    const cwd = runDirectory(join(directory, 'by-hand', 'runs', place), learnt.owner);
    const [program = '', ...args] = learnt.arguments;
    const child = spawn(program, [...args, ...more], { cwd, ...learnt.owner, stdio: 'ignore' });
    const verdict: Running['verdict'] = {};
    const connect = (): Promise<QmpClient | undefined> =>
      QmpClient.connect({
        clock: realClock,
        connector: realConnector,
        path: join(cwd, 'qmp.sock'),
        onEvent: ({ name, data }) => {
          if (name === 'MIGRATION') verdict.status = String(data['status']);
        },
      }).catch(() => undefined);
    return { place, child, verdict, monitor: await until(connect, 'QEMU does not start') };
  }
}

function isOver(status: string | undefined): true | undefined {
  if (status === 'failed') throw new Error('a migration by hand has failed');
  return status === 'completed' ? true : undefined;
}

async function end({ child }: Running): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
