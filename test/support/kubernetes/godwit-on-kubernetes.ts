import { mkdirSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { LocalBootstrap } from '../../../src/cli/local-bootstrap.ts';
import { LocalSynchronization } from '../../../src/cli/local-synchronization.ts';
import { install, installation } from '../../../src/control/installation/install.ts';
import { storageClasses } from '../../../src/control/storage/classes.ts';
import type { Processes } from '../../../src/env/ports.ts';
import { realEnv } from '../../../src/env/real.ts';
import { realProcesses } from '../../../src/env/real-processes.ts';
import { extensionRights, userRights } from '../../../src/extension/rights.ts';
import { Client } from '../../../src/kube/client.ts';
import { HttpsTransport } from '../../../src/kube/https-transport.ts';
import { systemKubeconfigPorts } from '../../../src/kube/kubeconfig-system.ts';
import { loadKubeconfig } from '../../../src/kube/kubeconfig.ts';
import type { Resource } from '../../../src/kube/resource.ts';
import { synchronizationRights } from '../../../src/sync/rights.ts';
import type { KubeObject } from '../../../src/api/meta.ts';
import { eventually } from '../eventually.ts';
import type { Place } from '../godwit.ts';
import { ControlPlane } from './control-plane.ts';
import { givenCluster } from './foreign-cluster.ts';
import { freePorts } from '../network.ts';
import { KeptProcess } from './kept-process.ts';

/** Benchmarks have this file below `dist`, too, where it is compiled. */
const isCompiled = import.meta.url.endsWith('.js');
const main = fileURLToPath(new URL(isCompiled ? '../../../cli/main.js' : '../../../dist/cli/main.js', import.meta.url));

const NAMESPACE = 'kubevirt';
const CONTROLLER = 'godwit-controller';
const PATIENCE_MS = 120_000;
const TOKEN_LIFE_SECONDS = 24 * 3600;

const serviceAccounts: Resource = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
};

/**
 * What `godwit up` is on one machine, on a Kubernetes control plane instead: the same controllers, extension, synchronization
 * and agents, each in a process of its own with an account of its own, as an admin would run them.
 */
export class GodwitOnKubernetes {
  readonly #directory: string;
  readonly #place: Place;
  readonly #nodes: number;
  /** Of our own; undefined on a cluster that is there already. */
  #plane: ControlPlane | undefined;
  /** An admin's, as text. */
  #kubeconfig = '';
  #transport: HttpsTransport | undefined;
  #control: readonly KeptProcess[] = [];
  /** Replicas of the controllers, by the directory that each holds. */
  readonly #controllers = new Map<string, KeptProcess>();
  #agents: readonly KeptProcess[] = [];
  #synchronization: LocalSynchronization | undefined;
  #output = '';

  constructor(directory: string, place: Place, nodes: number) {
    this.#directory = directory;
    this.#place = place;
    this.#nodes = nodes;
  }

  /** What the control part has printed. */
  get output(): string {
    return [this.#output, ...this.#control.map((each) => each.output())].join('\n');
  }

  /** Starts all that does not run. */
  async start(): Promise<void> {
    if (this.#agents.length > 0 || this.#control.length > 0) await this.#plane?.start();
    else await this.#startAll();
    const before = this.#registrations();
    for (const each of [...this.#control, ...this.#agents]) each.start();
    // What is asked of the cluster from then on goes through the extension.
    await eventually(() => {
      if (this.#registrations() === before) throw new Error(this.output.slice(-4000));
    }, PATIENCE_MS);
  }

  /** kill -9 to the API server, the controllers and the extension at once. */
  async kill(): Promise<void> {
    for (const each of this.#agents) each.leave();
    await Promise.all([this.#plane?.killServer(), ...this.#control.map((each) => each.kill())]);
  }

  /** Starts one more replica of the controllers, which waits until it is needed. */
  addControllers(): void {
    const added = this.#newControllers();
    this.#control = [...this.#control, added];
    added.start();
  }

  /** kill -9 to the replica of the controllers that has the lease, for good. */
  async killControllers(identity: string): Promise<void> {
    const found = [...this.#controllers].find(([directory]) => identity.endsWith(directory));
    if (!found) throw new Error(`${identity} is none of ${[...this.#controllers.keys()].join(', ')}`);
    this.#control = this.#control.filter((each) => each !== found[1]);
    await found[1].kill();
  }

  /** Ends all but agents and guests. */
  async stop(): Promise<void> {
    await this.#synchronization?.stop();
    await this.kill();
    this.#transport?.close();
    await this.#plane?.stop();
  }

  async #startAll(): Promise<void> {
    const directory = this.#directory;
    mkdirSync(directory, { recursive: true, mode: 0o711 });
    this.#kubeconfig = await this.#provideCluster();
    const path = join(directory, 'kubeconfig');
    writeFileSync(path, this.#kubeconfig, { mode: 0o600 });
    const env = realEnv('error');
    const access = await loadKubeconfig({ ports: systemKubeconfigPorts(env.clock, process.env), path });
    this.#transport = new HttpsTransport({ access, env });
    const admin = new Client(this.#transport, 'godwit');
    const { signal } = new AbortController();
    await install(
      admin,
      env.clock,
      installation({
        ours: [...userRights(), ...extensionRights(), ...synchronizationRights()],
        initial: storageClasses(join(directory, 'shared')),
      }),
      signal,
    );
    await this.#kubeconfigFor(admin, CONTROLLER);
    this.#control = [
      this.#newControllers(),
      this.#component('extension', 'extension', {
        kubeconfig: await this.#kubeconfigFor(admin, 'godwit-extension'),
        listen: `${this.#place.host}:${(await freePorts(1))[0]}`,
      }),
    ];
    await this.#prepareAgents(admin, this.#kubeconfig);
    this.#synchronization = new LocalSynchronization({
      env,
      processes: this.#processes(),
      directory,
      host: this.#place.host,
      admin,
      kubeconfig: this.#kubeconfig,
      main,
      logLevel: 'warn',
      print: (line) => (this.#output += `${line}\n`),
    });
    await this.#synchronization.start();
  }

  /** An admin's kubeconfig of the cluster that is there, or of one of our own. */
  async #provideCluster(): Promise<string> {
    const given = await givenCluster();
    if (given !== undefined) return given;
    this.#plane = await ControlPlane.startIn(join(this.#directory, 'control-plane'), this.#place);
    return this.#plane.kubeconfig;
  }

  async #prepareAgents(client: Client, adminKubeconfig: string): Promise<void> {
    const below = join(this.#directory, 'nodes');
    mkdirSync(below, { recursive: true, mode: 0o711 });
    const bootstrap = join(below, 'bootstrap-kubeconfig');
    const { signal } = new AbortController();
    await new LocalBootstrap({ env: realEnv('error'), client, adminKubeconfig, path: bootstrap }).renew(signal);
    this.#agents = Array.from({ length: this.#nodes }, (_, index) => {
      const name = `node-${index + 1}`;
      const directory = join(below, name);
      mkdirSync(directory, { recursive: true, mode: 0o711 });
      const options = {
        name,
        'data-dir': directory,
        'bootstrap-kubeconfig': bootstrap,
        images: join(this.#directory, 'images'),
        shared: join(this.#directory, 'shared'),
        memory: String(Math.floor(totalmem() / this.#nodes)),
      };
      return this.#godwit('agent', options, join(directory, 'agent.log'));
    });
  }

  #newControllers(): KeptProcess {
    const name = `controllers-${this.#controllers.size}`;
    const kept = this.#component('controllers', name, { kubeconfig: this.#kubeconfigPath(CONTROLLER) });
    this.#controllers.set(join(this.#directory, name), kept);
    return kept;
  }

  #component(command: string, name: string, options: Readonly<Record<string, string>>): KeptProcess {
    const directory = join(this.#directory, name);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return this.#godwit(command, { ...options, 'data-dir': directory }, join(directory, 'output.log'));
  }

  #godwit(command: string, options: Readonly<Record<string, string>>, outputPath: string): KeptProcess {
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    return new KeptProcess({
      command: process.execPath,
      args: [main, command, ...args],
      outputPath,
      wrap: this.#place.wrap,
    });
  }

  #kubeconfigPath(account: string): string {
    return join(this.#directory, `${account}.kubeconfig`);
  }

  /** One for the account of a component, with a token of that account. */
  async #kubeconfigFor(admin: Client, account: string): Promise<string> {
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: { expirationSeconds: TOKEN_LIFE_SECONDS },
    };
    const { signal } = new AbortController();
    const { status } = await admin.post<KubeObject & { status?: { token?: string } }>(
      serviceAccounts,
      NAMESPACE,
      account,
      'token',
      body,
      signal,
    );
    const config = parse(this.#kubeconfig) as { users: { name: string }[] };
    const users = config.users.map(({ name }) => ({ name, user: { token: status?.token } }));
    const path = this.#kubeconfigPath(account);
    writeFileSync(path, stringify({ ...config, users }), { mode: 0o600 });
    return path;
  }

  /** How often the extension has said that it is registered. */
  #registrations(): number {
    return this.output.split('Webhooks and subresources for').length;
  }

  #processes(): Processes {
    const { wrap } = this.#place;
    return {
      ...realProcesses,
      spawnDetached: (options) => {
        const [command, args] = wrap(options.command, options.arguments);
        return realProcesses.spawnDetached({ ...options, command, arguments: args });
      },
    };
  }
}
