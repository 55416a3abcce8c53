import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { credentialsIn } from './credentials.ts';
import { LoadConnection } from './load-connection.ts';
import { cpuSeconds, memoryOf, type ProcessMemory } from './processes.ts';

/** A real server in a process of its own, and what /proc says about it. */

const main = fileURLToPath(new URL('../cli/main.js', import.meta.url));

export class ServerProcess {
  readonly directory = mkdtempSync(join(tmpdir(), 'godwit-bench-'));
  readonly #nodeOptions: readonly string[];
  #child: ChildProcess | undefined;
  #connections: LoadConnection[] = [];

  constructor(nodeOptions: readonly string[] = []) {
    this.#nodeOptions = nodeOptions;
  }

  /** Starts, or starts again on the same data; answers the milliseconds until it serves. */
  async start(): Promise<number> {
    const startedMs = performance.now();
    const child = spawn(
      process.execPath,
      [...this.#nodeOptions, main, 'up', '--nodes', '0', '--data-dir', this.directory, '--listen', '127.0.0.1:0'],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      child.stdout?.on('data', (chunk: Buffer) => String(chunk).includes('Admin kubeconfig:') && resolve());
      child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    });
    return performance.now() - startedMs;
  }

  async stop(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    this.#connections = [];
    const child = this.#child;
    if (!child || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }

  /** Stops, and leaves nothing behind. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** A connection of its own, with the admin's certificate. */
  async connect(): Promise<LoadConnection> {
    const connection = await LoadConnection.open(credentialsIn(join(this.directory, 'kubeconfig')));
    this.#connections.push(connection);
    return connection;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Where it is reached. */
  get url(): string {
    const { host, port } = credentialsIn(join(this.directory, 'kubeconfig'));
    return `https://${host}:${port}`;
  }

  /** Seconds of processor time, of all threads. */
  cpuSeconds(): number {
    return cpuSeconds(this.pid);
  }

  memory(): ProcessMemory {
    return memoryOf(this.pid);
  }
}
