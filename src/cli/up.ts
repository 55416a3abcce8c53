import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ApiServer, startApiServer } from '../apiserver/api-server.ts';
import { UnusableKeys } from '../apiserver/pki/cluster-pki.ts';
import { StorageError } from '../apiserver/storage/port.ts';
import type { Env } from '../env/ports.ts';
import { realProcesses } from '../env/real-processes.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import { startControlPlane } from './control-plane.ts';
import { addProcessMetrics } from './process-metrics.ts';
import { sharedPathOf, startNodes, usualNodeCount } from './start-nodes.ts';
import { renewRestoredData } from './restored-data.ts';
import { takeDirectory } from './take-directory.ts';
import { writePrivately } from './write-privately.ts';
import { importDefaultGuest } from './default-guest.ts';
import { UserError } from './failure.ts';
import { readLastPort, rememberPort, usualPort } from './last-port.ts';
import { LocalSynchronization } from './local-synchronization.ts';
import { LoopsError } from './loops.ts';

/** `godwit up`: one control plane on this machine, until a signal. */

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export interface UpOptions {
  readonly dataDir: string;
  /** How many nodes of this machine to start; as many as there were before, and three at first, where absent. */
  readonly nodes?: number;
  readonly listen?: ListenAddress;
  readonly auditLog?: string;
  /** Says that the data was restored from a backup, also where that cannot be seen. */
  readonly restored?: boolean;
  readonly logLevel: string;
}

export const DEFAULT_LISTEN: ListenAddress = { host: '127.0.0.1', port: 6443 };

/**
 * Starts, tells where the kubeconfig is, and that it serves, until SIGTERM or SIGINT, and stops cleanly; at SIGUSR2 it
 * stops once the virtual machines of its nodes have shut down.
 */
export async function up(
  options: UpOptions,
  env: Env,
  print: (line: string) => void,
  onServing: () => void = () => undefined,
): Promise<void> {
  const directory = resolve(options.dataDir);
  const lock = takeDirectory(directory, env.clock.now(), 'control-plane');
  try {
    const stopped = untilSignal();
    const metrics = new KubeMetrics(env.clock);
    addProcessMetrics(metrics, 'control-plane');
    const news = await renew(options, directory, env);
    const server = await listen(options, directory, env, metrics, print);
    for (const line of news) print(line);
    metrics.certificates('API server', () => server.certificates);
    const plane = await startControlPlane({
      env,
      metrics,
      handle: server.handle,
      host: new URL(server.url).host,
      sharedPath: sharedPathOf(directory),
      extensionPort: await usualPort(directory, 'extension-port'),
    });
    const { loops } = plane;
    // What is asked of it from now on goes through all that it should.
    await Promise.race([loops.synced, loops.failed, server.failed, stopped]);
    rememberPort(directory, server.port);
    const kubeconfig = writePrivately(join(directory, 'kubeconfig'), server.kubeconfig);
    lock.announce(server.url);
    const count = options.nodes ?? usualNodeCount(directory);
    if (count > 0) await importDefaultGuest(directory, env, print);
    const nodes = await startNodes({
      count,
      logLevel: options.logLevel,
      directory,
      env,
      print,
      admin: plane.admin,
      kubeconfig: server.kubeconfig,
    });
    const synchronization = new LocalSynchronization({
      env,
      processes: realProcesses,
      directory,
      host: new URL(server.url).hostname.replaceAll(/[[\]]/g, ''),
      admin: plane.admin,
      kubeconfig: server.kubeconfig,
      main: fileURLToPath(new URL('main.js', import.meta.url)),
      logLevel: options.logLevel,
      print,
    });
    await synchronization.start();
    print(`Godwit serves the Kubernetes API at ${server.url}`);
    print(`Admin kubeconfig: ${kubeconfig}`);
    print(`Try: KUBECONFIG=${kubeconfig} kubectl get ${count > 0 ? 'nodes' : 'namespaces'}`);
    onServing();
    const reason = await Promise.race([stopped, server.failed, loops.failed]);
    // Agents have something to say of the guests that they end.
    await nodes.stop(reason === 'SIGUSR2' ? 'SIGUSR2' : 'SIGTERM');
    await synchronization.stop();
    await loops.stop();
    await server.stop();
    if (reason instanceof Error) throw failureOf(reason);
    print('Stopped.');
  } finally {
    lock.release();
  }
}

function failureOf(reason: StorageError | LoopsError): UserError {
  if (reason instanceof LoopsError)
    return new UserError(`${reason.message}; what was acknowledged is on disk: start again`, { cause: reason });
  return new UserError(
    `the storage has failed (${reason.message}); what was acknowledged is on disk: mend the disk and start again`,
    { cause: reason },
  );
}

function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    // Whoever stops a group of processes tells some of them twice: that is no reason to leave before all is put away.
    process.on('SIGTERM', resolve);
    for (const signal of ['SIGINT', 'SIGUSR2'] as const) process.once(signal, resolve);
  });
}

async function renew({ restored }: UpOptions, directory: string, { random, clock }: Env): Promise<readonly string[]> {
  try {
    return await renewRestoredData(directory, { isRestored: restored === true, random, clock });
  } catch (error) {
    const isTheirs = error instanceof StorageError || typeof (error as NodeJS.ErrnoException).code === 'string';
    if (!isTheirs) throw error;
    throw new UserError(`cannot start from ${directory}: ${(error as Error).message}`, { cause: error });
  }
}

/** An address that was asked for is used or refused; the default gives way to whoever has it already. */
async function listen(
  options: UpOptions,
  directory: string,
  env: Env,
  metrics: KubeMetrics,
  print: (line: string) => void,
): Promise<ApiServer> {
  const wanted = options.listen ?? { ...DEFAULT_LISTEN, port: readLastPort(directory) ?? DEFAULT_LISTEN.port };
  const start = (address: ListenAddress): Promise<ApiServer> =>
    startApiServer({
      env,
      directory,
      ...address,
      moreMetrics: () => metrics.render(),
      hasDefaultAccounts: true,
      ...(options.auditLog ? { auditLog: resolve(options.auditLog) } : {}),
    });
  try {
    return await start(wanted);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const address = `${wanted.host}:${wanted.port}`;
    if (code === 'EADDRINUSE' && !options.listen) {
      print(`Port ${wanted.port} is taken; using a free one.`);
      return start({ ...wanted, port: 0 });
    }
    if (code === 'EADDRINUSE')
      throw new UserError(`${address} is taken by another program; choose another --listen, or port 0 for a free one`, {
        cause: error,
      });
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EACCES')
      throw new UserError(`cannot listen on ${address}: ${(error as Error).message}; choose another --listen`, {
        cause: error,
      });
    // What is on the disk, or the disk itself, is at fault: a stack would tell the user nothing.
    const isTheirs = error instanceof StorageError || error instanceof UnusableKeys || typeof code === 'string';
    if (!isTheirs) throw error;
    throw new UserError(`cannot start from ${directory}: ${(error as Error).message}`, { cause: error });
  }
}
