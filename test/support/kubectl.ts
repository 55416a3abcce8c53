import { execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'vitest';
import type { Anything } from './api.ts';
import { install } from './install.ts';
import { say } from './say.ts';

/** The real kubectl: the one on the PATH (or in GODWIT_KUBECTL), else Debian's package, installed on the way. */

export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Ends the command with SIGTERM after this long, for `-w` and the like. */
  readonly killAfterMs?: number;
}

const TIMEOUT_MS = 60_000;
/** Discovery is cached per home, and every test server has its own port. */
const home = mkdtempSync(join(tmpdir(), 'godwit-kubectl-'));

let found: { readonly path: string; readonly minor: number } | undefined;

function clientMinor(path: string): number | undefined {
  const { stdout, status } = spawnSync(path, ['version', '--client', '-o', 'json'], { encoding: 'utf8' });
  if (status !== 0) return undefined;
  const { clientVersion } = JSON.parse(stdout) as { clientVersion: { minor: string } };
  return Number.parseInt(clientVersion.minor, 10);
}

function locate(): { path: string; minor: number } {
  const path = process.env['GODWIT_KUBECTL'] ?? 'kubectl';
  let minor = clientMinor(path);
  if (minor === undefined) {
    install('kubectl', ['kubernetes-client'], () => clientMinor(path) !== undefined);
    minor = clientMinor(path);
  }
  if (minor === undefined)
    throw new Error('no kubectl: put one (1.28 or later) on the PATH, or name it in GODWIT_KUBECTL');
  if (minor < 28) say(`kubectl is 1.${minor}: the cases that need a later one are left out, each by name`);
  return { path, minor };
}

/** The minor version of kubectl, e.g. 32. */
export function kubectlMinor(): number {
  return (found ??= locate()).minor;
}

/** True where this kubectl is new enough; says which case is left out where it is not. */
export function kubectlHas(minor: number, what: string): boolean {
  if (kubectlMinor() >= minor) return true;
  say(`left out: ${what} needs kubectl 1.${minor}`);
  return false;
}

/** Defines a test that needs a kubectl of at least this minor version; with an older one it is left out, by name. */
export function itSince(minor: number, name: string, test: () => Promise<void>): void {
  it.runIf(kubectlHas(minor, `"${name}"`))(name, test);
}

export class Kubectl {
  readonly #kubeconfig: string;
  readonly #always: readonly string[];

  constructor(kubeconfig: string, always: readonly string[] = []) {
    this.#kubeconfig = kubeconfig;
    this.#always = always;
  }

  /** The same, with every command in this namespace. */
  inNamespace(namespace: string): Kubectl {
    return new Kubectl(this.#kubeconfig, [...this.#always, '--namespace', namespace]);
  }

  /** Runs kubectl and answers whatever came of it. */
  run(args: readonly string[], options: RunOptions = {}): Promise<Result> {
    const { path } = (found ??= locate());
    return new Promise((resolve) => {
      const child = execFile(
        path,
        [...this.#always, ...args],
        {
          encoding: 'utf8',
          maxBuffer: 64 * 1024 * 1024,
          timeout: options.killAfterMs ?? TIMEOUT_MS,
          env: { ...process.env, HOME: home, KUBECONFIG: this.#kubeconfig, ...options.env },
        },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : 1, stdout, stderr }),
      );
      // One that reads no input may have ended before it gets it.
      child.stdin?.on('error', () => undefined);
      child.stdin?.end(options.stdin ?? '');
    });
  }

  /** Runs kubectl, expects success, and answers the JSON it printed. */
  async json(args: readonly string[] | string): Promise<Anything> {
    return JSON.parse(await this.ok([...(typeof args === 'string' ? args.split(' ') : args), '-o', 'json']));
  }

  /** Runs kubectl, expects success, and answers what it printed. */
  async ok(args: readonly string[] | string, options: RunOptions = {}): Promise<string> {
    const list = typeof args === 'string' ? args.split(' ') : args;
    const { code, stdout, stderr } = await this.run(list, options);
    if (code !== 0) throw new Error(`kubectl ${list.join(' ')} failed with ${code}:\n${stderr}${stdout}`);
    return stdout;
  }

  /** Runs kubectl, expects failure, and answers its complaint. */
  async fails(args: readonly string[] | string, options: RunOptions = {}): Promise<string> {
    const list = typeof args === 'string' ? args.split(' ') : args;
    const { code, stdout, stderr } = await this.run(list, options);
    if (code === 0) throw new Error(`kubectl ${list.join(' ')} was expected to fail, but printed:\n${stdout}`);
    return stderr + stdout;
  }

  /** Applies manifests given as text or objects. */
  apply(manifest: string | object, ...args: readonly string[]): Promise<string> {
    return this.ok(['apply', '-f', '-', ...args], {
      stdin: typeof manifest === 'string' ? manifest : JSON.stringify(manifest),
    });
  }

  /** Starts a command that runs until stopped, and collects its output. */
  start(args: readonly string[]): {
    readonly output: () => string;
    readonly stop: () => void;
    readonly ended: Promise<number | null>;
  } {
    const { path } = (found ??= locate());
    let output = '';
    const child = spawn(path, [...this.#always, ...args], {
      env: { ...process.env, HOME: home, KUBECONFIG: this.#kubeconfig },
    });
    child.stdout.on('data', (chunk: Buffer) => (output += chunk));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk));
    const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    return { output: () => output, stop: () => child.kill('SIGTERM'), ended };
  }
}
