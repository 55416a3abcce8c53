import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import type { Anything } from '../../api.ts';
import { eventually } from '../../eventually.ts';
import { KeptProcess } from '../kept-process.ts';
import type { ControlPlane } from '../control-plane.ts';
import { CONTAINER_PROGRAMS, PROGRAMS } from '../wanted.ts';
import { type HostDirectories, HostNamespace } from './host-namespace.ts';
import type { HostPlace } from './hosts-network.ts';
import { containerdConfiguration, kubeletConfiguration, networkConfiguration } from './settings.ts';

const run = promisify(execFile);
/** That of kubelets in containerd. */
const CONTAINERD_NAMESPACE = 'k8s.io';
const GROUPS = '/sys/fs/cgroup';

export interface KubeletHostOptions extends HostDirectories {
  readonly name: string;
  readonly place: HostPlace;
  readonly plane: ControlPlane;
  /** Archives of images that need not be pulled. */
  readonly images: readonly string[];
}

/** A host of a cluster, with a real kubelet and a containerd of its own, in namespaces of this machine. */
export class KubeletHost {
  readonly name: string;
  readonly address: string;
  readonly kubelet: KeptProcess;
  readonly containerd: KeptProcess;
  readonly #namespace: HostNamespace;

  private constructor(
    { name, place }: KubeletHostOptions,
    namespace: HostNamespace,
    processes: { readonly kubelet: KeptProcess; readonly containerd: KeptProcess },
  ) {
    this.name = name;
    this.address = place.address;
    this.#namespace = namespace;
    this.kubelet = processes.kubelet;
    this.containerd = processes.containerd;
  }

  /** Starts one, which has the images; its kubelet registers it. */
  static async start(options: KubeletHostOptions): Promise<KubeletHost> {
    const { name, place, directory, images } = options;
    const namespace = await HostNamespace.hold(place.namespace, options);
    const programs = await writeSettings(options);
    const kept = (program: string, command: string, args: readonly string[]): KeptProcess =>
      new KeptProcess({
        command: 'env',
        args: [`PATH=${programs}`, command, ...args],
        outputPath: join(directory, `${program}.log`),
        wrap: namespace.wrap,
      });
    const path = (file: string): string => join(directory, file);
    const host = new KubeletHost(options, namespace, {
      containerd: kept('containerd', 'containerd', ['--config', path('containerd.toml')]),
      kubelet: kept('kubelet', join(PROGRAMS ?? '', 'kubelet'), [
        `--config=${path('kubelet.yaml')}`,
        `--kubeconfig=${path('kubelet.kubeconfig')}`,
        `--hostname-override=${name}`,
        `--node-ip=${place.address}`,
      ]),
    });
    host.containerd.start();
    for (const image of images) await host.#import(image);
    host.kubelet.start();
    return host;
  }

  /** Runs a command there, as whoever looks after the machine; answers what it printed. */
  async run(command: string, ...args: readonly string[]): Promise<string> {
    return (await run(...(this.#namespace.wrap(command, args) as [string, string[]]))).stdout;
  }

  /** What runs in the one container of a pod, by the names of programs. */
  async programsOf(pod: Anything): Promise<string[]> {
    return [...(await this.#processesOf(pod)).values()].toSorted();
  }

  /** kill -9 to the QEMU of a launcher pod. */
  async killQemu(pod: Anything): Promise<void> {
    const [qemu] = [...(await this.#processesOf(pod))].filter(([, program]) => program.startsWith('qemu'));
    await this.run('kill', '-9', qemu?.[0] ?? '');
  }

  /** Ends all that runs there, by force. */
  async stop(): Promise<void> {
    await this.kubelet.kill();
    this.containerd.start();
    const containers = (await eventually(() => this.#ctr('containers', 'ls', '-q'))).trim().split('\n');
    await this.containerd.kill();
    await this.#namespace.release();
    await removeGroups(containers);
  }

  /** The programs of a container's processes, by the numbers that these have on the host. */
  async #processesOf({ status }: Anything): Promise<Map<string, string>> {
    const id = status.containerStatuses[0].containerID.replace('containerd://', '');
    const [, ...lines] = (await this.#ctr('task', 'ps', id)).trim().split('\n');
    const pids = lines.map((line) => line.split(/\s/)[0] ?? '');
    return new Map(await Promise.all(pids.map(async (pid) => [pid, await this.#programOf(pid)] as const)));
  }

  async #programOf(pid: string): Promise<string> {
    return basename((await this.run('readlink', `/proc/${pid}/exe`)).trim());
  }

  #ctr(...args: readonly string[]): Promise<string> {
    return this.run(join(CONTAINER_PROGRAMS ?? '', 'usr/bin/ctr'), '-n', CONTAINERD_NAMESPACE, ...args);
  }

  async #import(image: string): Promise<void> {
    // It listens a moment after it was started.
    await eventually(() => this.#ctr('version'));
    await this.#ctr('image', 'import', image);
  }
}

/** The groups of containers are this machine's, and stay when those who are in them end, which takes a moment: removes them. */
async function removeGroups(containers: readonly string[]): Promise<void> {
  for (const hierarchy of ['.', ...readdirSync(GROUPS)])
    for (const container of containers) {
      const group = join(GROUPS, hierarchy, CONTAINERD_NAMESPACE, container);
      if (existsSync(group)) await eventually(() => rmdirSync(group));
    }
}

/** Writes what its programs read; answers where they find each other. */
async function writeSettings({ name, place, plane, directory }: KubeletHostOptions): Promise<string> {
  const path = (file: string): string => join(directory, file);
  const below = CONTAINER_PROGRAMS ?? '';
  mkdirSync(path('network'), { recursive: true });
  writeFileSync(path('network/10-pods.conflist'), JSON.stringify(networkConfiguration(place.podRange)));
  writeFileSync(path('containerd.toml'), containerdConfiguration(join(below, 'usr/lib/cni'), path('network')));
  const { kubeconfig, serving, ca } = await plane.kubeletKeys(name, place.address);
  writeFileSync(path('ca.crt'), ca);
  writeFileSync(path('kubelet.crt'), serving.certificatePem);
  writeFileSync(path('kubelet.key'), serving.keyPem, { mode: 0o600 });
  writeFileSync(path('kubelet.kubeconfig'), kubeconfig, { mode: 0o600 });
  writeFileSync(path('kubelet.yaml'), stringify(kubeletConfiguration(place.address, path)));
  return [join(below, 'usr/bin'), join(below, 'usr/sbin'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'].join(':');
}
