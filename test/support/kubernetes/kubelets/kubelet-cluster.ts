import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { accessIn } from '../../access.ts';
import type { Anything } from '../../api.ts';
import { eventually } from '../../eventually.ts';
import { HERE } from '../../godwit.ts';
import { passageDirectory } from '../../passage.ts';
import { AdministeredCluster, NODES } from '../administered-cluster.ts';
import { ControlPlane } from '../control-plane.ts';
import { needsOwnCluster } from '../wanted.ts';
import { HostsNetwork } from './hosts-network.ts';
import { KubeletHost } from './kubelet-host.ts';

const PATIENCE_MS = 180_000;

interface Parts {
  readonly network: HostsNetwork;
  readonly plane: ControlPlane;
  readonly hosts: readonly KubeletHost[];
}

/** A cluster with a real control plane, on whose hosts real kubelets run containers. */
export class KubeletCluster extends AdministeredCluster {
  readonly #parts: Parts;
  readonly #lost = new Set<KubeletHost>();

  private constructor(directory: string, parts: Parts) {
    super(directory, parts.plane);
    this.#parts = parts;
  }

  /** Starts one with hosts of these names that have the images, which are archives; returns once all are ready. */
  static async start(names: readonly string[], images: readonly string[]): Promise<KubeletCluster> {
    needsOwnCluster('its nodes are kubelets of its own');
    const directory = passageDirectory();
    const network = await HostsNetwork.lay();
    const options = { hasPodNetwork: true, letsNodesJoin: false };
    const place = { ...HERE, host: network.here };
    const plane = await ControlPlane.startIn(join(directory, 'control-plane'), place, options);
    network.leadTo(new URL(accessIn(plane.kubeconfig).url), join(directory, 'relay.log'));
    const starting = names.map(async (name) => {
      const own = join(directory, 'hosts', name);
      mkdirSync(own, { recursive: true });
      const agentDirectory = join(directory, NODES, name);
      const at = await network.place(name);
      const directories = { directory: own, agentDirectory, sharedDirectory: join(directory, 'shared') };
      return KubeletHost.start({ name, place: at, plane, images, ...directories });
    });
    const hosts = await Promise.all(starting);
    const cluster = new KubeletCluster(directory, { network, plane, hosts });
    await eventually(async () => {
      const { items } = await cluster.kubectl.json('get nodes');
      const printed = hosts.map(({ kubelet }) => kubelet.output().slice(-2000)).join('\n');
      expect(
        items.filter(isReady).map(({ metadata }: Anything) => metadata.name),
        printed,
      ).toEqual(names);
    }, PATIENCE_MS);
    return cluster;
  }

  /** The host of this name. */
  host(name: string): KubeletHost {
    const found = this.#parts.hosts.find((each) => each.name === name);
    if (!found) throw new Error(`there is no host ${name}`);
    return found;
  }

  /** Switches a host off for good, with all that runs there. */
  async lose(name: string): Promise<void> {
    const host = this.host(name);
    this.#lost.add(host);
    await host.stop();
  }

  /** Ends everything, by force, and removes every file. */
  async stop(): Promise<void> {
    const { network, plane, hosts } = this.#parts;
    this.close();
    await Promise.all(hosts.filter((host) => !this.#lost.has(host)).map((host) => host.stop()));
    await plane.stop();
    await network.remove();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
  }
}

function isReady({ status }: Anything): boolean {
  return status.conditions.some(({ type, status: value }: Anything) => type === 'Ready' && value === 'True');
}
