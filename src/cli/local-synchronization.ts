import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { isFeatureGateEnabled } from '../api/kubevirt/feature-gates.ts';
import type { KubeVirt } from '../api/kubevirt/kube-virt.ts';
import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { KubeObject } from '../api/meta.ts';
import { type Env, type Processes, sleep } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import { errorText } from '../kube/error-text.ts';
import { Informer } from '../kube/informer.ts';
import { kubeVirts } from '../kube/kubevirt-resources.ts';
import type { Resource } from '../kube/resource.ts';
import { SYNCHRONIZATION_ACCOUNT } from '../sync/rights.ts';
import { SYNCHRONIZATION_PORT } from '../sync/wire/address.ts';
import { configuredPort } from './configured-port.ts';
import { synchronizationBelow } from './data-directory.ts';
import { KeptProcess } from './kept-process.ts';
import { usualPort } from './last-port.ts';
import { writePrivately } from './write-privately.ts';

export interface LocalSynchronizationOptions {
  readonly env: Env;
  readonly processes: Processes;
  /** The data directory of the cluster. */
  readonly directory: string;
  /** The addresses of this machine on which other clusters may dial in. */
  readonly host: string;
  /** May make tokens. */
  readonly admin: Client;
  /** An admin's, which says where the cluster is. */
  readonly kubeconfig: string;
  /** This very program. */
  readonly main: string;
  readonly logLevel: string;
  readonly print: (line: string) => void;
}

interface TokenRequest extends KubeObject {
  readonly status?: { readonly token?: string };
}

const serviceAccounts: Resource = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
};

/** A token is good for so long, and is replaced long before. */
const TOKEN_LIFE_S = 24 * 3600;
const TOKEN_RENEWAL_MS = 4 * 3_600_000;
const TOKEN_RETRY_MS = 10_000;
/** Of the data directory: where this machine finds out what the process counts. */
const METRICS_PORT_FILE = 'synchronization-metrics-port';

/**
 * The synchronization controller that `godwit up` has on this machine, in a process of its own: it talks to other
 * clusters, and has no other rights than it needs. It is there while migrations between clusters are switched on.
 */
export class LocalSynchronization {
  readonly #options: LocalSynchronizationOptions;
  readonly #directory: string;
  readonly #stopping = new AbortController();
  #process: KeptProcess | undefined;
  /** The port that it was started for, where one was asked for. */
  #wantedPort: number | undefined;
  /** What is being done about the process, one thing after another. */
  #work: Promise<void> = Promise.resolve();
  #informer: Promise<void> = Promise.resolve();
  #keepingToken: Promise<void> | undefined;

  constructor(options: LocalSynchronizationOptions) {
    this.#options = options;
    this.#directory = synchronizationBelow(options.directory);
  }

  /** Starts it as soon as it is wanted. */
  start(): void {
    const { env, admin } = this.#options;
    const informer = new Informer({ client: admin, env, resource: kubeVirts });
    informer.onChange(({ type, object }) => this.#follow(type === 'deleted' ? undefined : object));
    this.#informer = informer.run(this.#stopping.signal);
  }

  /** Ends it. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#informer;
    await this.#work;
    await this.#keepingToken;
    await this.#process?.stop('SIGTERM');
  }

  #follow(kubeVirt: KubeVirt | undefined): void {
    const { spec } = kubeVirt ?? {};
    const isWanted = spec !== undefined && isFeatureGateEnabled('DecentralizedLiveMigration', spec.configuration);
    this.#work = this.#work
      .then(() => this.#bring(isWanted, configuredPort(spec)))
      .catch((error: unknown) => {
        this.#options.print(`The synchronization controller cannot be started: ${errorText(error)}`);
      });
  }

  async #bring(isWanted: boolean, wantedPort: number | undefined): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    if (this.#process && (!isWanted || wantedPort !== this.#wantedPort)) {
      await this.#process.stop('SIGTERM');
      this.#process = undefined;
    }
    if (!isWanted || this.#process) return;
    this.#wantedPort = wantedPort;
    this.#process = this.#newProcess(wantedPort);
    this.#process.start();
  }

  #newProcess(wantedPort: number | undefined): KeptProcess {
    const { env, processes, print, main, host, logLevel, directory } = this.#options;
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    const kubeconfig = this.#writeKubeconfig();
    let [port, metricsPort] = [wantedPort, 0];
    return new KeptProcess({
      env,
      processes,
      print,
      title: 'The synchronization controller',
      directory: this.#directory,
      outputFile: 'sync.log',
      argumentsNow: () => {
        const listen = `${host.includes(':') ? `[${host}]` : host}:${port}`;
        const metrics = `127.0.0.1:${metricsPort}`;
        const options = { kubeconfig, listen, metrics, 'data-dir': this.#directory, 'log-level': logLevel };
        return [main, 'sync', ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])];
      },
      beforeStart: async () => {
        // Whoever took it since the last time has it.
        port = wantedPort ?? (await usualPort(directory, 'synchronization-port', SYNCHRONIZATION_PORT));
        metricsPort = await usualPort(directory, METRICS_PORT_FILE);
        await this.#renewToken().catch((error: unknown) =>
          print(`The synchronization controller cannot be given a new token: ${errorText(error)}`),
        );
        this.#keepingToken ??= this.#keepToken();
      },
    });
  }

  /** One that names a file with its token, which is replaced from time to time. */
  #writeKubeconfig(): string {
    const config = parse(this.#options.kubeconfig) as { users: { name: string; user: object }[] };
    const users = config.users.map(({ name }) => ({ name, user: { tokenFile: 'token' } }));
    return writePrivately(join(this.#directory, 'kubeconfig'), stringify({ ...config, users }));
  }

  async #keepToken(): Promise<void> {
    const { env } = this.#options;
    const { signal } = this.#stopping;
    for (let delayMs = TOKEN_RENEWAL_MS; ; ) {
      await sleep(env.clock, delayMs, signal);
      if (signal.aborted) return;
      try {
        await this.#renewToken();
        delayMs = TOKEN_RENEWAL_MS;
      } catch (error) {
        env.log.warn('the synchronization controller gets no new token', { error: errorText(error) });
        delayMs = TOKEN_RETRY_MS;
      }
    }
  }

  async #renewToken(): Promise<void> {
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: { expirationSeconds: TOKEN_LIFE_S },
    };
    const { status } = await this.#options.admin.post<TokenRequest>(
      serviceAccounts,
      SYSTEM_NAMESPACE,
      SYNCHRONIZATION_ACCOUNT,
      'token',
      body,
      this.#stopping.signal,
    );
    writePrivately(join(this.#directory, 'token'), status?.token ?? '');
  }
}
