import type { Credentials } from './cluster-access.ts';
import { KubeconfigError, type KubeconfigPorts, type ProgramResult } from './kubeconfig-ports.ts';

/** Credentials from a program, as client.authentication.k8s.io describes it: run when needed, believed until they expire. */

/** The `exec` part of a kubeconfig's user. */
export interface ExecPlugin {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: readonly { readonly name: string; readonly value: string }[];
  readonly installHint: string | undefined;
  /** What the program is told about the cluster, where it asks for that. */
  readonly cluster: (() => Promise<object>) | undefined;
  /** Names the plug-in in errors: the file and the field. */
  readonly where: string;
}

/** The versions whose answers are understood; they differ in nothing that matters here. */
export const EXEC_VERSIONS: readonly string[] = [
  'client.authentication.k8s.io/v1',
  'client.authentication.k8s.io/v1beta1',
];

/** How long a program may take; it may have to ask a server of its own. */
const RUN_TIMEOUT_MS = 60_000;
/** A refusal by the server makes the program run again, but not more often than this. */
const RERUN_MS_MIN = 10_000;
/** How much of a program's complaint is shown. */
const COMPLAINT_LENGTH_MAX = 300;

interface Known {
  readonly credentials: Credentials;
  readonly obtainedMs: number;
  readonly expiresMs: number;
}

export class ExecCredentials {
  readonly #plugin: ExecPlugin;
  readonly #ports: KubeconfigPorts;
  #known: Known | undefined;
  #running: Promise<Known> | undefined;

  constructor(plugin: ExecPlugin, ports: KubeconfigPorts) {
    this.#plugin = plugin;
    this.#ports = ports;
  }

  /** Rejects with KubeconfigError. All who ask while the program runs share its answer. */
  async credentials(): Promise<Credentials> {
    if (this.#known && this.#ports.clock.now() < this.#known.expiresMs) return this.#known.credentials;
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    this.#known = await this.#running;
    return this.#known.credentials;
  }

  /** The server did not take them. */
  forget(): void {
    const { clock } = this.#ports;
    if (this.#known && clock.now() - this.#known.obtainedMs >= RERUN_MS_MIN) this.#known = undefined;
  }

  async #run(): Promise<Known> {
    const { clock } = this.#ports;
    const tooLate = new AbortController();
    const timer = clock.setTimer(() => tooLate.abort(), RUN_TIMEOUT_MS);
    try {
      const result = await this.#result(tooLate.signal);
      return { ...this.#parse(result), obtainedMs: clock.now() };
    } finally {
      timer.cancel();
    }
  }

  async #result(signal: AbortSignal): Promise<ProgramResult> {
    const { apiVersion, command, args, environment, cluster, installHint } = this.#plugin;
    const spec = { interactive: false, ...(cluster ? { cluster: await cluster() } : {}) };
    const variables = Object.fromEntries(environment.map(({ name, value }) => [name, value]));
    const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
    let result: ProgramResult;
    try {
      result = await this.#ports.run({
        command,
        args,
        environment: { ...this.#ports.environment, ...variables, KUBERNETES_EXEC_INFO: info },
        signal,
      });
    } catch (error) {
      if (signal.aborted) throw this.#error(`did not end within ${RUN_TIMEOUT_MS / 1000} s`, error);
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      const hint = installHint === undefined ? '' : ` (${installHint.trim()})`;
      throw this.#error(isMissing ? `was not found${hint}` : `could not be run: ${(error as Error).message}`, error);
    }
    if (result.exitCode === 0) return result;
    const complaint = result.errors.trim().slice(-COMPLAINT_LENGTH_MAX);
    throw this.#error(`failed with exit code ${result.exitCode}${complaint === '' ? '' : `: ${complaint}`}`);
  }

  #parse({ output }: ProgramResult): Omit<Known, 'obtainedMs'> {
    const { apiVersion } = this.#plugin;
    let answer: Partial<ExecAnswer> | null;
    try {
      answer = JSON.parse(output) as Partial<ExecAnswer> | null;
    } catch (error) {
      throw this.#error('answered no JSON', error);
    }
    if (answer?.kind !== 'ExecCredential') throw this.#error('answered no ExecCredential');
    if (answer.apiVersion !== apiVersion)
      throw this.#error(`answered in version ${String(answer.apiVersion)} when asked for ${apiVersion}`);
    const { token, clientCertificateData, clientKeyData, expirationTimestamp } = answer.status ?? {};
    if ((clientCertificateData === undefined) !== (clientKeyData === undefined))
      throw this.#error('answered a certificate without a key, or a key without a certificate');
    if (!isText(token) && !isText(clientCertificateData))
      throw this.#error('answered neither a token nor a certificate');
    const expiresMs = expirationTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(expirationTimestamp);
    if (Number.isNaN(expiresMs)) throw this.#error('answered an expirationTimestamp that is no time');
    const credentials: Credentials = {
      ...(isText(token) ? { authorization: `Bearer ${token}` } : {}),
      ...(isText(clientCertificateData) ? { certificate: clientCertificateData, key: clientKeyData } : {}),
    };
    return { credentials, expiresMs };
  }

  #error(what: string, cause?: unknown): KubeconfigError {
    return new KubeconfigError(`${this.#plugin.where}: the program ${this.#plugin.command} ${what}`, cause);
  }
}

interface ExecAnswer {
  readonly apiVersion: string;
  readonly kind: string;
  readonly status: {
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
    readonly expirationTimestamp?: string;
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
