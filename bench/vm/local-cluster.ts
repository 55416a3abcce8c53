import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { IMAGES } from '../../test/support/guest-manifests.ts';
import { credentialsIn } from '../credentials.ts';
import { LoadConnection } from '../load-connection.ts';
import { argumentsOf, endProcessesOf, processesOf } from '../processes.ts';

const main = fileURLToPath(new URL('../../cli/main.js', import.meta.url));
const guests = fileURLToPath(new URL('../../../guest', import.meta.url));
const NODES = '/api/v1/nodes';
const WAIT_MS_MAX = 120_000;

/** `godwit up` with real nodes on this machine. Whatever ends this process, all that was started ends with it. */
export class LocalCluster {
  /** Short to name, as sockets demand. */
  readonly directory = mkdtempSync('/tmp/gwb-');
  readonly nodes: number;
  #child: ChildProcess | undefined;
  #connections: LoadConnection[] = [];
  readonly #onExit = (): void => this.remove();

  constructor(nodes: number) {
    this.nodes = nodes;
    // QEMU, which runs as somebody else, passes through.
    chmodSync(this.directory, 0o711);
    process.on('exit', this.#onExit);
  }

  get dataDirectory(): string {
    return join(this.directory, 'd');
  }

  get controlPlane(): number {
    return this.#child?.pid ?? 0;
  }

  /** Starts, perhaps on data from before. Answers the milliseconds until it serves, and until all nodes are ready. */
  async start(): Promise<{ readonly servesMs: number; readonly readyMs: number }> {
    const startedMs = performance.now();
    const options = ['--nodes', String(this.nodes), '--data-dir', this.dataDirectory, '--listen', '127.0.0.1:0'];
    const child = spawn(process.execPath, [main, 'up', ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      child.stdout?.on('data', (chunk: Buffer) => String(chunk).includes('Admin kubeconfig:') && resolve());
      child.once('exit', (code) => reject(new Error(`godwit up ended with ${code}`)));
    });
    const servesMs = performance.now() - startedMs;
    await this.#nodesAreReady(Date.now() - servesMs);
    return { servesMs, readyMs: performance.now() - startedMs };
  }

  /** Builds the bare-metal guest, and takes it in. */
  importProbe(): void {
    run(join(guests, 'probe', 'build.sh'), this.directory);
    const images = ['--data-dir', this.dataDirectory];
    run(
      process.execPath,
      main,
      'image',
      'import',
      IMAGES.probe,
      '--kernel',
      join(this.directory, 'probe.elf'),
      ...images,
    );
  }

  /** Builds the guests, and takes them in. The Linux guest comes with every cluster, if it was built before. */
  importGuests(): void {
    this.importProbe();
    const images = ['--data-dir', this.dataDirectory];
    const linux = join(this.directory, 'linux');
    run(process.execPath, join(guests, 'linux', 'build.mjs'), '--out', linux);
    const files = ['--kernel', join(linux, 'vmlinux'), '--initrd', join(linux, 'initramfs')];
    run(process.execPath, main, 'image', 'import', IMAGES.linux, ...files, ...images);
  }

  /** A connection of its own, with the admin's certificate. */
  async connect(): Promise<LoadConnection> {
    const connection = await LoadConnection.open(credentialsIn(join(this.dataDirectory, 'kubeconfig')));
    this.#connections.push(connection);
    return connection;
  }

  agents(): number[] {
    return processesOf(this.directory).filter((pid) => argumentsOf(pid)[2] === 'agent');
  }

  qemus(): number[] {
    return processesOf(this.directory).filter((pid) => argumentsOf(pid)[0]?.includes('qemu'));
  }

  /** Ends the control plane and the agents in order; guests go on. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#hangUp();
    if (!child || child.exitCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await exited;
  }

  /** Ends everything by force, and leaves nothing behind. Does not wait for anything, so that it can be done at exit. */
  remove(): void {
    process.off('exit', this.#onExit);
    this.#hangUp();
    this.#child?.kill('SIGKILL');
    endProcessesOf(this.directory);
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
  }

  #hangUp(): void {
    for (const connection of this.#connections) connection.close();
    this.#connections = [];
  }

  /** Those of before are ready until somebody notices: only what was said since counts. */
  async #nodesAreReady(sinceMs: number): Promise<void> {
    const connection = await this.connect();
    const deadlineMs = performance.now() + WAIT_MS_MAX;
    for (;;) {
      const { items } = JSON.parse(await connection.text('GET', NODES)) as { items: readonly NodeObject[] };
      if (items.filter((node) => isReady(node, sinceMs)).length === this.nodes) return;
      if (performance.now() > deadlineMs) throw new Error('not all nodes became ready');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

interface NodeObject {
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly lastHeartbeatTime: string;
    }[];
  };
}

function isReady({ status }: NodeObject, sinceMs: number): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  // Times of the API are whole seconds.
  return ready?.status === 'True' && Date.parse(ready.lastHeartbeatTime) >= Math.floor(sinceMs / 1000) * 1000;
}

function run(command: string, ...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}
