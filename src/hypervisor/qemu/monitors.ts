import { type Clock, type Connector, sleep } from '../../env/ports.ts';
import { instanceLabel } from './command-line.ts';
import { QmpClient } from './qmp.ts';
import { QmpError } from './qmp-error.ts';
import { isRecord, type QmpEvent } from './qmp-message.ts';
import type { RunFiles } from './run-files.ts';

/** How often a monitor that is not there yet is looked for. */
const RETRY_MS = 10;
/** Longer than the tens of milliseconds that QEMU needs; a host that is overloaded needs seconds. */
const CONNECT_TIMEOUT_MS = 30_000;
/**
 * What was asked or half answered in a connection that was cut can still spoil the next one: its negotiation was done for it, or the
 * rest of an answer comes first. There is nothing left of it after that.
 */
const SPOILT_MAX = 3;

/** Both monitors of a QEMU. */
export interface Monitors {
  readonly main: QmpClient;
  readonly urgent: QmpClient;
}

export interface MonitorsOptions {
  readonly clock: Clock;
  readonly connector: Connector;
  readonly files: RunFiles;
  /** Who is expected to be there. */
  readonly instance: string;
  /** Hears the events of the main monitor. */
  readonly onEvent: (event: QmpEvent) => void;
  /** Gives up when aborted. */
  readonly signal: AbortSignal;
}

/** Connects to both monitors as soon as they are there. Rejects when whoever is behind them is somebody else. */
export async function connectMonitors(options: MonitorsOptions): Promise<Monitors> {
  const { files, onEvent } = options;
  const main = await connectWhenThere(options, files.monitor, onEvent);
  try {
    await checkInstance(main, options.instance);
    return { main, urgent: await connectWhenThere(options, files.urgentMonitor, () => undefined) };
  } catch (error) {
    main.close();
    throw error;
  }
}

async function connectWhenThere(
  { clock, connector, signal }: MonitorsOptions,
  path: string,
  onEvent: (event: QmpEvent) => void,
): Promise<QmpClient> {
  const deadlineMs = clock.now() + CONNECT_TIMEOUT_MS;
  for (let spoilt = 0; ; ) {
    const connectTimeoutMs = Math.max(1, deadlineMs - clock.now());
    try {
      return await QmpClient.connect({ clock, connector, path, onEvent, connectTimeoutMs });
    } catch (error) {
      signal.throwIfAborted();
      const code = error instanceof QmpError ? error.code : undefined;
      const isSpoilt = code === 'Protocol' || code === 'CommandFailed';
      if (isSpoilt) spoilt++;
      const mayCome = code === 'Disconnected' || (isSpoilt && spoilt < SPOILT_MAX);
      if (!mayCome || clock.now() >= deadlineMs) throw error;
    }
    await sleep(clock, RETRY_MS, signal);
    signal.throwIfAborted();
  }
}

/** Sockets are files, and files can be put in each other's place; what a QEMU was started with cannot. */
async function checkInstance(monitor: QmpClient, instance: string): Promise<void> {
  const devices = await monitor.execute('query-chardev');
  const label = instanceLabel(instance);
  if (Array.isArray(devices) && devices.some((each) => isRecord(each) && each['label'] === label)) return;
  throw new QmpError('Protocol', `the QEMU behind the monitor is not instance ${instance}`);
}
