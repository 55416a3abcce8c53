import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Credentials, LoadConnection } from './load-connection.ts';

/** A real server in a process of its own, and what /proc says about it. */

const main = fileURLToPath(new URL('../cli/main.js', import.meta.url));
const CLOCK_TICKS_PER_SECOND = 100;

export class ServerProcess {
  readonly directory = mkdtempSync(join(tmpdir(), 'godwit-bench-'));
  #child: ChildProcess | undefined;
  #connections: LoadConnection[] = [];

  /** Starts, or starts again on the same data; answers the milliseconds until it serves. */
  async start(): Promise<number> {
    const startedMs = performance.now();
    const child = spawn(
      process.execPath,
      [main, 'up', '--nodes', '0', '--data-dir', this.directory, '--listen', '127.0.0.1:0'],
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
    const connection = await LoadConnection.open(this.#credentials());
    this.#connections.push(connection);
    return connection;
  }

  /** Seconds of processor time, of all threads. */
  cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.#child?.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
  }

  /** Resident memory in MB, and how much of it is not just pages of files, which the kernel may take back at will. */
  memory(): { readonly residentMegabytes: number; readonly privateMegabytes: number } {
    const status = readFileSync(`/proc/${this.#child?.pid}/status`, 'utf8');
    const megabytes = (field: string): number => Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024;
    return { residentMegabytes: megabytes('VmRSS'), privateMegabytes: megabytes('RssAnon') };
  }

  #credentials(): Credentials {
    const text = readFileSync(join(this.directory, 'kubeconfig'), 'utf8');
    const value = (field: string): string => new RegExp(`${field}: (\\S+)`).exec(text)?.[1] ?? '';
    const pem = (field: string): string => Buffer.from(value(field), 'base64').toString('utf8');
    const { hostname, port } = new URL(value('server'));
    return {
      host: hostname,
      port: Number(port),
      ca: pem('certificate-authority-data'),
      certificate: pem('client-certificate-data'),
      key: pem('client-key-data'),
    };
  }
}
