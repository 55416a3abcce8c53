import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { accessIn } from '../../support/access.ts';
import type { Anything } from '../../support/api.ts';
import { runCli } from '../../support/cli.ts';
import { eventually } from '../../support/eventually.ts';
import { HERE } from '../../support/godwit.ts';
import { IMAGES } from '../../support/guest-manifests.ts';
import { probeGuest, type Sign, signsOfLife } from '../../support/guests.ts';
import { HttpClient } from '../../support/http-client.ts';
import { Kubectl } from '../../support/kubectl.ts';
import { ControlPlane } from '../../support/kubernetes/control-plane.ts';
import { KeptProcess } from '../../support/kubernetes/kept-process.ts';
import { StandInHosts } from '../../support/kubernetes/stand-in/hosts.ts';
import { PodNetwork } from '../../support/kubernetes/stand-in/pod-network.ts';
import { needsOwnCluster } from '../../support/kubernetes/wanted.ts';
import { oneLife, type Stay } from '../../support/one-life.ts';
import { processesIn } from '../../support/processes-in.ts';
import { SerialKeeper } from '../../support/serial-keeper.ts';

const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
const PATIENCE_MS = 180_000;
const MEMORY = '2Gi';

/**
 * A cluster as an admin has it before Godwit is installed: a real Kubernetes control plane, and two hosts that are played. Machines that
 * join it run real agents with real guests.
 */
export class AdminsCluster {
  readonly directory: string;
  readonly api: HttpClient;
  readonly kubectl: Kubectl;
  readonly hosts: StandInHosts;
  readonly #network: PodNetwork;
  readonly #plane: ControlPlane;
  readonly #serials: SerialKeeper;
  readonly #agents: KeptProcess[] = [];

  private constructor(
    directory: string,
    parts: { network: PodNetwork; plane: ControlPlane; api: HttpClient; hosts: StandInHosts },
  ) {
    this.directory = directory;
    this.#network = parts.network;
    this.#plane = parts.plane;
    this.api = parts.api;
    this.hosts = parts.hosts;
    this.kubectl = new Kubectl(this.kubeconfig);
    writeFileSync(this.kubeconfig, parts.plane.kubeconfig, { mode: 0o600 });
    mkdirSync(this.nodesDirectory, { mode: 0o711 });
    this.#serials = new SerialKeeper(this.nodesDirectory, join(directory, 'serials'));
  }

  static async start(): Promise<AdminsCluster> {
    needsOwnCluster('it plays the hosts of its cluster, whose API server has to reach their pods');
    // Short to name, as sockets demand; and QEMU, which runs as somebody else, may pass through.
    const directory = mkdtempSync('/tmp/gw-');
    chmodSync(directory, 0o711);
    const network = await PodNetwork.lay();
    const place = { ...HERE, host: network.host };
    const options = { hasPodNetwork: true, letsNodesJoin: false };
    const plane = await ControlPlane.startIn(join(directory, 'control-plane'), place, options);
    const access = accessIn(plane.kubeconfig);
    const api = new HttpClient(access);
    const below = { directory: join(directory, 'pods'), server: new URL(access.url) };
    const hosts = await StandInHosts.start({ api, network, ...below }, 'host-1', 'host-2');
    return new AdminsCluster(directory, { network, plane, api, hosts });
  }

  get kubeconfig(): string {
    return join(this.directory, 'kubeconfig');
  }

  /** Below it each node has a directory of its own. */
  get nodesDirectory(): string {
    return join(this.directory, 'nodes');
  }

  /** Runs `godwit` as the admin, and expects success. */
  async cli(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runCli(args, { KUBECONFIG: this.kubeconfig });
    if (code !== 0) throw new Error(`godwit ${args.join(' ')} failed with ${code}:\n${stderr}${stdout}`);
    return stdout;
  }

  /** Makes nodes of machines, as the admin is told to, that have the image of the probe guest; returns once they are ready. */
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

  /** Speaks as a node that has joined. */
  clientOf(node: string): HttpClient {
    const own = readFileSync(join(this.nodesDirectory, node, 'pki', 'client.pem'), 'utf8');
    return new HttpClient({ ...accessIn(this.#plane.kubeconfig), certificate: own, key: own });
  }

  /** The pods of a component. */
  async podsOf(component: string): Promise<Anything[]> {
    const { items } = await this.kubectl.json(`get pods -n kubevirt -l kubevirt.io=${component}`);
    return items;
  }

  /** Waits until the guest runs and is heard, and answers a sign of life that came after the call. */
  async lives(name: string): Promise<Sign> {
    const before = new Map([...this.#serials.logs()].map(([uid, log]) => [uid, log.length]));
    return eventually(async () => {
      const { status } = await this.kubectl.json(`get vmi ${name}`);
      expect(status?.phase, JSON.stringify(status)).toBe('Running');
      const { podUID } = status.rightToRun.holder;
      const log = this.#serials.logs().get(podUID) ?? '';
      const sign = signsOfLife(log.slice(before.get(podUID) ?? 0)).at(-1);
      if (!sign) throw new Error(`${name} says nothing: ${log.slice(-500)}`);
      return sign;
    }, PATIENCE_MS);
  }

  /** Has a guest move, and answers where it was, one machine after the other, in the life that it had before. */
  async moves(name: string): Promise<Stay[]> {
    const { boot } = await this.lives(name);
    const { nodeName } = (await this.kubectl.json(`get vmi ${name}`)).status;
    await this.cli('migrate', name, '--watch');
    expect((await this.kubectl.json(`get vmi ${name}`)).status.nodeName).not.toBe(nodeName);
    return this.isStill(name, boot);
  }

  /** The guest goes on with the life that it had, whole; answers where it was. */
  async isStill(name: string, boot: string): Promise<Stay[]> {
    expect((await this.lives(name)).boot).toBe(boot);
    return oneLife(boot, this.#serials.logs());
  }

  /** Ends everything that was started, by force, and removes every file. */
  async stop(): Promise<void> {
    this.#serials.stop();
    for (const agent of this.#agents) await agent.kill();
    await this.hosts.stop();
    this.api.close();
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
