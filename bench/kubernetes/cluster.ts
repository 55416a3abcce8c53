import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { accessIn } from '../../test/support/access.ts';
import { HERE } from '../../test/support/godwit.ts';
import { AUDIT_LOG } from '../../test/support/kubernetes/control-plane.ts';
import { GodwitOnKubernetes } from '../../test/support/kubernetes/godwit-on-kubernetes.ts';
import { LoadConnection } from '../load-connection.ts';
import { nodesReady } from '../migration/model-crowd.ts';
import { argumentsOf, endProcessesOf, processesOf } from '../processes.ts';

const agentsMain = fileURLToPath(new URL('../migration/model-agents.js', import.meta.url));

/** The programs whose cost is told, by what each is called here. */
const KUBERNETES = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
const OURS = ['controllers', 'extension'] as const;
export type ProcessName = (typeof KUBERNETES)[number] | (typeof OURS)[number] | 'agents';

/** A Kubernetes control plane with our processes as an admin runs them, and the real agents of nodes that are models. */
export class KubernetesCluster {
  readonly #directory = mkdtempSync('/tmp/gwb-');
  readonly #kubernetes = new GodwitOnKubernetes(this.#directory, HERE, 0);
  #agents: ChildProcess | undefined;
  #connections: LoadConnection[] = [];
  /** Whatever ends this process, all that was started ends with it. */
  readonly #onExit = (): void => {
    endProcessesOf(this.#directory);
    rmSync(this.#directory, { recursive: true, force: true });
  };

  constructor() {
    chmodSync(this.#directory, 0o711);
    process.on('exit', this.#onExit);
  }

  /** Who asked its API server for what. */
  get auditLog(): string {
    return this.#path(AUDIT_LOG);
  }

  /** Starts everything, with so many nodes, and room for so many pods on each. */
  async start(nodes: number, pods: number): Promise<void> {
    await this.#kubernetes.start();
    const authority = join(this.#directory, 'authority.pem');
    const parts = ['ca.crt', 'ca.key'].map((name) => readFileSync(this.#path(name), 'utf8'));
    writeFileSync(authority, parts.join(''), { mode: 0o600 });
    const args = [this.#access().url, authority, String(nodes), String(pods)];
    this.#agents = spawn(process.execPath, [agentsMain, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.#agents.stdout) await once(this.#agents.stdout, 'data');
    await nodesReady(await this.connect(), nodes);
  }

  /** A connection of its own, with the admin's certificate. */
  async connect(): Promise<LoadConnection> {
    const { url, ...credentials } = this.#access();
    const { hostname: host, port } = new URL(url);
    const connection = await LoadConnection.open({ host, port: Number(port), ...credentials });
    this.#connections.push(connection);
    return connection;
  }

  processes(): ReadonlyMap<ProcessName, number> {
    const found = new Map<ProcessName, number>([['agents', this.#agents?.pid ?? 0]]);
    for (const pid of processesOf(this.#directory)) {
      const [program = '', , command = ''] = argumentsOf(pid);
      const name = KUBERNETES.find((each) => each === basename(program)) ?? OURS.find((each) => each === command);
      if (name) found.set(name, pid);
    }
    return found;
  }

  async remove(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.#kubernetes.stop();
    process.off('exit', this.#onExit);
    this.#onExit();
  }

  #access(): ReturnType<typeof accessIn> {
    return accessIn(readFileSync(join(this.#directory, 'kubeconfig'), 'utf8'));
  }

  #path(name: string): string {
    return join(this.#directory, 'control-plane', name);
  }
}
