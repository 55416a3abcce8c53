import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { holderOf, synchronizationBelow } from '../../src/cli/data-directory.ts';
import { accessIn } from './access.ts';
import type { Wrap } from './cli.ts';
import { GodwitOnKubernetes } from './kubernetes/godwit-on-kubernetes.ts';
import { ADDRESS, IS_KUBERNETES } from './kubernetes/wanted.ts';

/**
 * A real `godwit up` in a process and a directory of its own, as a user would start it; or all that it runs, on a Kubernetes
 * control plane, where the run is on that.
 */

/**
 * The kubeconfig of some other server to test instead, such as a real kube-apiserver: shows that the tests ask for
 * what Kubernetes does. Tests that need to start and stop the server cannot be run that way.
 */
const REFERENCE = process.env['GODWIT_TEST_REFERENCE'];

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Far more than a start takes: what it has said by then tells what it waits for. */
const START_MS = 110_000;

/** Where a cluster lives: an address, and what brings a command there. */
export interface Place {
  readonly host: string;
  readonly wrap: Wrap;
}

/** This machine. */
export const HERE: Place = { host: ADDRESS, wrap: (command, args) => [command, [...args]] };

/** How many nodes are asked for; the last word counts. */
function nodesIn(args: readonly string[]): number {
  const index = args.lastIndexOf('--nodes');
  return index === -1 ? 0 : Number(args[index + 1]);
}

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
  /** All that is run instead, where the run is on Kubernetes. */
  readonly onKubernetes: GodwitOnKubernetes | undefined;
  #child: ChildProcess | undefined;
  #output = '';

  private constructor(directory: string, place: Place, args: readonly string[]) {
    this.directory = directory;
    this.place = place;
    this.#arguments = args;
    if (IS_KUBERNETES) this.onKubernetes = new GodwitOnKubernetes(directory, place, nodesIn(args));
  }

  /** Everything that the process printed. */
  get output(): string {
    return this.onKubernetes?.output ?? this.#output;
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
    if (this.onKubernetes) return true;
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts again on the same directory (and so on the same port), and returns once it serves. */
  async start(): Promise<void> {
    if (this.onKubernetes) return this.onKubernetes.start();
    const { host, wrap } = this.place;
    const common = ['--nodes', '0', '--data-dir', this.directory, ...this.#listen(host)];
    const [command, args] = wrap(process.execPath, [main, 'up', ...common, ...this.#arguments]);
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    let started = '';
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      const late = (): void => reject(new Error(`godwit up does not serve:\n${started}`));
      timer = setTimeout(late, START_MS);
      const take = (chunk: Buffer): void => {
        this.#output += chunk;
        started += chunk;
        if (started.includes('Admin kubeconfig:')) resolve();
      };
      child.stdout?.on('data', take);
      child.stderr?.on('data', take);
      child.once('error', reject);
      child.once('exit', (code, signal) => reject(new Error(`godwit up ended with ${code ?? signal}:\n${started}`)));
    }).finally(() => clearTimeout(timer));
  }

  /** It remembers the port by itself. */
  #listen(host: string): readonly string[] {
    if (this.#output === '') return ['--listen', `${host}:0`];
    return host === HERE.host ? [] : ['--listen', new URL(this.access().url).host];
  }

  /** kill -9, and wait until the process is gone. */
  async kill(): Promise<void> {
    if (this.onKubernetes) return this.onKubernetes.kill();
    await this.#end('SIGKILL');
  }

  /** SIGTERM, and wait for the exit code. */
  async terminate(): Promise<number | null> {
    return this.#end('SIGTERM');
  }

  /** Ends it by force, with all that a test cannot start again. */
  async stop(): Promise<void> {
    await (this.onKubernetes ? this.onKubernetes.stop() : this.kill());
  }

  /** Ends the process and removes its directory. */
  async remove(): Promise<void> {
    await this.onKubernetes?.stop();
    await this.#end('SIGKILL');
    // What it has started outlives it.
    const synchronization = holderOf(synchronizationBelow(this.directory));
    if (synchronization) process.kill(synchronization.pid, 'SIGKILL');
    rmSync(this.directory, { recursive: true, force: true });
  }

  access(): Access {
    return accessIn(readFileSync(this.kubeconfig, 'utf8'));
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
