import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { isFeatureGateEnabled } from '../api/kubevirt/feature-gates.ts';
import type { KubeVirt } from '../api/kubevirt/kube-virt.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../api/kubevirt/virtual-machine-instance-migration.ts';
import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { KubeObject } from '../api/meta.ts';
import { KEY_CLAIM_PREFIX } from '../control/migration/key-claims.ts';
import { type Env, type Processes, sleep } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import { errorText } from '../kube/error-text.ts';
import { Informer } from '../kube/informer.ts';
import { kubeVirts, virtualMachineInstanceMigrations } from '../kube/kubevirt-resources.ts';
import { leaseResource } from '../kube/leader-lease.ts';
import type { Resource } from '../kube/resource.ts';
import { isKept, sideOf } from '../sync/controller/side.ts';
import { SYNCHRONIZATION_ACCOUNT } from '../sync/rights.ts';
import { configMaps, peersOf, TRUST_CONFIG_MAP } from '../sync/trust/objects.ts';
import { keepAuthorities } from '../sync/trust/store.ts';
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

const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
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
/** Of the process' own directory: how it reaches the cluster. */
const KUBECONFIG_FILE = 'kubeconfig';
/** Of the data directory: where this machine finds out what the process counts. */
const METRICS_PORT_FILE = 'synchronization-metrics-port';

/**
 * The synchronization controller that `godwit up` has on this machine, in a process of its own: it talks to other
 * clusters, and has no other rights than it needs. It is there while migrations between clusters are switched on, from the
 * moment on when somebody needs it: a half of a migration is there, or a cluster is trusted. Who needed it once has it from
 * the start the next time: there may be halves that are over, and wait to be let go. Those that have begun are brought to
 * their end also where migrations between clusters are switched off meanwhile.
 */
export class LocalSynchronization {
  readonly #options: LocalSynchronizationOptions;
  readonly #directory: string;
  readonly #stopping = new AbortController();
  /** Ends looking for whoever needs it. */
  readonly #looking = new AbortController();
  #process: KeptProcess | undefined;
  #isNeeded: boolean;
  /** UIDs of halves that nobody but this process can bring to their end. */
  readonly #open = new Set<string>();
  /** As the cluster's configuration says. */
  #spec: KubeVirt['spec'] | undefined;
  /** The port that it was started for, where one was asked for. */
  #wantedPort: number | undefined;
  /** What is being done about the process, one thing after another. */
  #work: Promise<void> = Promise.resolve();
  readonly #informers: Promise<void>[] = [];
  #keepingToken: Promise<void> | undefined;

  constructor(options: LocalSynchronizationOptions) {
    this.#options = options;
    this.#directory = synchronizationBelow(options.directory);
    this.#isNeeded = existsSync(join(this.#directory, KUBECONFIG_FILE));
  }

  /** Starts it as soon as it is wanted, and needed. Resolves when this cluster has an identity for others. */
  async start(): Promise<void> {
    const { env, admin } = this.#options;
    const common = { client: admin, env };
    const configuration = new Informer({ ...common, resource: kubeVirts });
    configuration.onChange(({ type, object }) => {
      this.#spec = type === 'deleted' ? undefined : object.spec;
      this.#follow();
    });
    const halves = new Informer({ ...common, resource: virtualMachineInstanceMigrations });
    halves.onChange(({ type, object }) => this.#count(object, type !== 'deleted' && isOpenHalf(object)));
    this.#informers.push(configuration.run(this.#stopping.signal), halves.run(this.#stopping.signal));
    if (this.#isNeeded) return;
    const fieldSelector = `metadata.name=${TRUST_CONFIG_MAP}`;
    const trust = new Informer({ ...common, resource: configMaps, namespace: SYSTEM_NAMESPACE, fieldSelector });
    trust.onChange(({ object }) => {
      if (peersOf(object.data).peers.length > 0) this.#need();
    });
    const claims = new Informer({ ...common, resource: leaseResource, namespace: SYSTEM_NAMESPACE });
    claims.onChange(({ type, object }) => {
      if (type !== 'deleted' && object.metadata.name?.startsWith(KEY_CLAIM_PREFIX) === true) this.#need();
    });
    this.#informers.push(trust.run(this.#looking.signal), claims.run(this.#looking.signal));
    await this.#makeIdentity();
  }

  /** Ends it. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#looking.abort();
    await Promise.all(this.#informers);
    await this.#work;
    await this.#keepingToken;
    await this.#process?.stop('SIGTERM');
  }

  /** Somebody needs it, and is not asked again. */
  #need(): void {
    this.#isNeeded = true;
    this.#looking.abort();
    this.#follow();
  }

  /** Follows where the last half has ended, or the first one begun. */
  #count({ metadata }: VirtualMachineInstanceMigration, isOpen: boolean): void {
    const hadAny = this.#open.size > 0;
    if (isOpen) this.#open.add(metadata.uid ?? '');
    else this.#open.delete(metadata.uid ?? '');
    if (hadAny !== this.#open.size > 0) this.#follow();
  }

  /** What others are told to trust is there before the process is that keeps it. */
  async #makeIdentity(): Promise<void> {
    const { env, admin } = this.#options;
    try {
      const { metadata } = await admin.get(namespaces, '', 'kube-system', this.#stopping.signal);
      await keepAuthorities({ client: admin, env, clusterId: metadata.uid ?? '' }, this.#stopping.signal);
    } catch (error) {
      // The process makes it, too, when it starts.
      env.log.warn('this cluster has no identity for others yet', { error: errorText(error) });
    }
  }

  #follow(): void {
    const spec = this.#spec;
    // What is not known yet says neither whether it is wanted nor at which port; what is gone takes it from no half.
    if (spec === undefined && (this.#open.size > 0 || !this.#process)) return;
    const isOn = spec !== undefined && isFeatureGateEnabled('DecentralizedLiveMigration', spec.configuration);
    this.#work = this.#work
      .then(() => this.#bring((isOn || this.#open.size > 0) && this.#isNeeded, configuredPort(spec)))
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
    return writePrivately(join(this.#directory, KUBECONFIG_FILE), stringify({ ...config, users }));
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

/** Whether a migration is a half that is not over, or is kept until the other one knows that it is. */
function isOpenHalf(migration: VirtualMachineInstanceMigration): boolean {
  return sideOf(migration) !== undefined && (!isFinalMigration(migration) || isKept(migration));
}
