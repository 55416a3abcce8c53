import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { holderOf, synchronizationBelow } from '../../src/cli/data-directory.ts';
import type { Wrap } from './cli.ts';

/** A real `godwit up` in a process and a directory of its own, as a user would start it. */

/**
 * The kubeconfig of some other server to test instead, such as a real kube-apiserver: shows that the tests ask for
 * what Kubernetes does. Tests that need to start and stop the server cannot be run that way.
 */
const REFERENCE = process.env['GODWIT_TEST_REFERENCE'];

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Where a cluster lives: an address, and what brings a command there. */
export interface Place {
  readonly host: string;
  readonly wrap: Wrap;
}

const HERE: Place = { host: '127.0.0.1', wrap: (command, args) => [command, [...args]] };

/** Credentials of a kubeconfig, as PEM. */
export interface Access {
  readonly url: string;
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

export class Godwit {
  readonly directory: string;
  readonly place: Place;
  readonly #arguments: readonly string[];
  #child: ChildProcess | undefined;
  /** Everything that the process printed. */
  output = '';

  private constructor(directory: string, place: Place, args: readonly string[]) {
    this.directory = directory;
    this.place = place;
    this.#arguments = args;
  }

  /** Starts on a fresh directory and a free port. */
  static async start(...args: readonly string[]): Promise<Godwit> {
    return Godwit.startIn(mkdtempSync(join(tmpdir(), 'godwit-test-')), ...args);
  }

  /** Starts on this directory and a free port. */
  static startIn(directory: string, ...args: readonly string[]): Promise<Godwit> {
    return Godwit.startAt(HERE, directory, ...args);
  }

  /** Starts on this directory, somewhere else. */
  static async startAt(place: Place, directory: string, ...args: readonly string[]): Promise<Godwit> {
    const godwit = new Godwit(directory, place, args);
    if (REFERENCE === undefined) await godwit.start();
    else copyFileSync(REFERENCE, godwit.kubeconfig);
    return godwit;
  }

  get kubeconfig(): string {
    return join(this.directory, 'kubeconfig');
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Whether the process goes on, as far as anybody knows. */
  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts again on the same directory (and so on the same port), and returns once it serves. */
  async start(): Promise<void> {
    const { host, wrap } = this.place;
    const common = ['--nodes', '0', '--data-dir', this.directory, ...this.#listen(host)];
    const [command, args] = wrap(process.execPath, [main, 'up', ...common, ...this.#arguments]);
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    let started = '';
    await new Promise<void>((resolve, reject) => {
      const take = (chunk: Buffer): void => {
        this.output += chunk;
        started += chunk;
        if (started.includes('Admin kubeconfig:')) resolve();
      };
      child.stdout?.on('data', take);
      child.stderr?.on('data', take);
      child.once('error', reject);
      child.once('exit', (code, signal) => reject(new Error(`godwit up ended with ${code ?? signal}:\n${started}`)));
    });
  }

  /** It remembers the port by itself. */
  #listen(host: string): readonly string[] {
    if (this.output === '') return ['--listen', `${host}:0`];
    return host === HERE.host ? [] : ['--listen', new URL(this.access().url).host];
  }

  /** kill -9, and wait until the process is gone. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** SIGTERM, and wait for the exit code. */
  async terminate(): Promise<number | null> {
    return this.#end('SIGTERM');
  }

  /** Ends the process and removes its directory. */
  async remove(): Promise<void> {
    await this.#end('SIGKILL');
    // What it has started outlives it.
    const synchronization = holderOf(synchronizationBelow(this.directory));
    if (synchronization) process.kill(synchronization.pid, 'SIGKILL');
    rmSync(this.directory, { recursive: true, force: true });
  }

  access(): Access {
    const { clusters, users } = parse(readFileSync(this.kubeconfig, 'utf8')) as {
      clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
      users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
    };
    const decode = (text = ''): string => Buffer.from(text, 'base64').toString('utf8');
    return {
      url: clusters[0]?.cluster.server ?? '',
      ca: decode(clusters[0]?.cluster['certificate-authority-data']),
      certificate: decode(users[0]?.user['client-certificate-data']),
      key: decode(users[0]?.user['client-key-data']),
    };
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (!child || !this.isRunning) return child?.exitCode ?? null;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
    return child.exitCode;
  }
}
