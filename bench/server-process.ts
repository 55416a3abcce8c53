import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A real server in a process of its own, and what /proc says about it. */

const main = fileURLToPath(new URL('../cli/main.js', import.meta.url));
const CLOCK_TICKS_PER_SECOND = 100;

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export class ServerProcess {
  readonly directory = mkdtempSync(join(tmpdir(), 'godwit-bench-'));
  #child: ChildProcess | undefined;
  #sessions: ClientHttp2Session[] = [];

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
    for (const session of this.#sessions) session.destroy();
    this.#sessions = [];
    if (!this.#child) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exited;
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** A connection of its own, with the admin's certificate. */
  connect(): ClientHttp2Session {
    const text = readFileSync(join(this.directory, 'kubeconfig'), 'utf8');
    const value = (field: string): string => new RegExp(`${field}: (\\S+)`).exec(text)?.[1] ?? '';
    const pem = (field: string): string => Buffer.from(value(field), 'base64').toString('utf8');
    const session = connect(value('server'), {
      ca: pem('certificate-authority-data'),
      cert: pem('client-certificate-data'),
      key: pem('client-key-data'),
      settings: { initialWindowSize: 4 * 1024 * 1024 },
    });
    session.setLocalWindowSize(64 * 1024 * 1024);
    this.#sessions.push(session);
    return session;
  }

  /** Seconds of processor time, of all threads. */
  cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.#child?.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
  }

  /** Resident memory in MB. */
  memoryMegabytes(): number {
    const status = readFileSync(`/proc/${this.#child?.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  }
}

/** One request; rejects on anything but a 2xx answer. */
export function call(session: ClientHttp2Session, method: string, path: string, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = {
      ':method': method,
      ':path': path,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const stream = session.request(headers, { endStream: body === undefined });
    let status = 0;
    const chunks: Buffer[] = [];
    stream.on('response', (response) => (status = Number(response[':status'])));
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      if (status >= 200 && status < 300) resolve({ status, body: text });
      else reject(new Error(`${method} ${path}: ${status} ${text.slice(0, 300)}`));
    });
    if (body !== undefined) stream.end(body);
  });
}
