import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { accessIn } from '../../support/access.ts';
import type { Anything } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { HERE } from '../../support/godwit.ts';
import { IMAGES } from '../../support/guest-manifests.ts';
import { probeGuest } from '../../support/guests.ts';
import { HttpClient } from '../../support/http-client.ts';
import { AdministeredCluster } from '../../support/kubernetes/administered-cluster.ts';
import { ControlPlane } from '../../support/kubernetes/control-plane.ts';
import { KeptProcess } from '../../support/kubernetes/kept-process.ts';
import { StandInHosts } from '../../support/kubernetes/stand-in/hosts.ts';
import { PodNetwork } from '../../support/kubernetes/stand-in/pod-network.ts';
import { needsOwnCluster } from '../../support/kubernetes/wanted.ts';
import { passageDirectory } from '../../support/passage.ts';
import { processesIn } from '../../support/processes-in.ts';

const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
const PATIENCE_MS = 180_000;
const MEMORY = '2Gi';
const TAINT = 'godwit.dev/guests-only=true:NoSchedule';

interface Parts {
  readonly network: PodNetwork;
  readonly plane: ControlPlane;
  readonly api: HttpClient;
  readonly hosts: StandInHosts;
}

/**
 * A cluster as an admin has it before Godwit is installed: a real Kubernetes control plane, and two hosts that are played. Machines that
 * join it run real agents with real guests.
 */
export class AdminsCluster extends AdministeredCluster {
  readonly hosts: StandInHosts;
  readonly #network: PodNetwork;
  readonly #plane: ControlPlane;
  readonly #agents: KeptProcess[] = [];

  private constructor(directory: string, parts: Parts) {
    super(directory, parts.plane, parts.api);
    this.#network = parts.network;
    this.#plane = parts.plane;
    this.hosts = parts.hosts;
  }

  /** Starts one, whose signer gives certificates this long a life. */
  static async start(certificateLife?: string): Promise<AdminsCluster> {
    needsOwnCluster('it plays the hosts of its cluster, whose API server has to reach their pods');
    const directory = passageDirectory();
    const network = await PodNetwork.lay();
    const place = { ...HERE, host: network.host };
    const life = certificateLife === undefined ? {} : { certificateLife };
    const options = { hasPodNetwork: true, letsNodesJoin: false, ...life };
    const plane = await ControlPlane.startIn(join(directory, 'control-plane'), place, options);
    const access = accessIn(plane.kubeconfig);
    const api = new HttpClient(access);
    const below = { directory: join(directory, 'pods'), server: new URL(access.url) };
    const hosts = await StandInHosts.start({ api, network, ...below }, 'host-1', 'host-2');
    return new AdminsCluster(directory, { network, plane, api, hosts });
  }

  /**
   * Makes nodes of machines, as the admin is told to, that have the image of the probe guest, and run nothing but guests; returns once they
   * are ready.
   */
  async join(...names: readonly string[]): Promise<void> {
    const kernel = probeGuest(this.directory);
    await this.cli('image', 'import', IMAGES.probe, '--kernel', kernel, '--data-dir', this.directory);
    const told = await this.cli('token', 'create', '--ttl', '1h');
    const [, server = '', token = '', hash = ''] =
      /godwit agent .* --server (\S+) --token (\S+) --ca-hash (\S+)/.exec(told) ?? [];
    for (const name of names) {
      const directory = join(this.nodesDirectory, name);
      mkdirSync(directory, { mode: 0o711 });
      const where = ['--data-dir', directory, '--images', join(this.directory, 'images'), '--memory', MEMORY];
      where.push('--register-with-taints', TAINT);
      const joining = ['--address', this.#network.host, '--server', server, '--token', token, '--ca-hash', hash];
      const agent = new KeptProcess({
        command: process.execPath,
        args: [main, 'agent', '--name', name, ...where, ...joining],
        outputPath: join(directory, 'agent.log'),
        wrap: HERE.wrap,
      });
      this.#agents.push(agent);
      agent.start();
    }
    const printed = (): string => this.#agents.map((each) => each.output().slice(-1000)).join('\n');
    await eventually(async () => {
      const { items } = await this.kubectl.json('get nodes -l kubevirt.io/schedulable=true');
      const ready = items.filter(({ status }: Anything) =>
        status.conditions.some(({ type, status: value }: Anything) => type === 'Ready' && value === 'True'),
      );
      expect(ready.map(({ metadata }: Anything) => metadata.name).toSorted(), printed()).toEqual(names);
    }, PATIENCE_MS);
  }

  /** What a node that has joined shows of itself now, and its key. */
  certificateOf(node: string): string {
    return readFileSync(join(this.nodesDirectory, node, 'pki', 'client.pem'), 'utf8');
  }

  /** Speaks as a node that has joined. */
  clientOf(node: string): HttpClient {
    const own = this.certificateOf(node);
    return new HttpClient({ ...accessIn(this.#plane.kubeconfig), certificate: own, key: own });
  }

  /** Speaks as whoever has this token. */
  clientWith(token: string): HttpClient {
    const { url, ca } = accessIn(this.#plane.kubeconfig);
    return new HttpClient({ url, ca, token });
  }

  /** What Godwit's components were forbidden to do until now. */
  forbidden(): Promise<string[]> {
    return this.#plane.forbidden();
  }

  /** Ends everything that was started, by force, and removes every file. */
  async stop(): Promise<void> {
    for (const agent of this.#agents) await agent.kill();
    await this.hosts.stop();
    this.close();
    await this.#plane.stop();
    await eventually(() => {
      const left = processesIn(this.directory);
      for (const pid of left) process.kill(pid, 'SIGKILL');
      expect(left).toEqual([]);
    }, PATIENCE_MS);
    this.#network.remove();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
  }
}
