import { join } from 'node:path';
import type { Anything, Api } from '../../api.ts';
import { say } from '../../say.ts';
import type { PodNetwork } from './pod-network.ts';
import { PodProcess } from './pod-process.ts';

/** How often they look at their pods. */
const LOOK_MS = 500;
const LEASE_MS = 8000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const APPLY = { 'content-type': 'application/apply-patch+yaml' };
const MERGE = { 'content-type': 'application/strategic-merge-patch+json' };
/** Nobody here runs out of anything. */
const CAPACITY = { cpu: '8', memory: '32Gi', pods: '110', 'ephemeral-storage': '100Gi' };

export interface HostsOptions {
  /** An admin's. */
  readonly api: Api;
  readonly network: PodNetwork;
  readonly server: URL;
  readonly directory: string;
}

/**
 * Stands in for hosts with kubelets, where there are neither containers nor images: what is scheduled to them runs as processes of this
 * machine, whatever image it names (see `pod-process.ts`), is probed, reported and ended as by a kubelet. What containers are kept from
 * besides, such as memory and system calls, is not played.
 */
export class StandInHosts {
  readonly #options: HostsOptions;
  readonly #names: readonly string[];
  readonly #pods = new Map<string, PodProcess>();
  /** What was last said of each pod. */
  readonly #told = new Map<string, string>();
  /** What pods have printed that are gone. */
  #printed = '';
  #timer: NodeJS.Timeout | undefined;
  #renewedMs = 0;
  #looking: Promise<void> = Promise.resolve();

  private constructor(options: HostsOptions, names: readonly string[]) {
    this.#options = options;
    this.#names = names;
  }

  /** Registers nodes of these names, and runs what is scheduled to them. */
  static async start(options: HostsOptions, ...names: readonly string[]): Promise<StandInHosts> {
    const hosts = new StandInHosts(options, names);
    for (const name of names) await hosts.#register(name);
    let isLooking = false;
    const look = (): void => {
      if (isLooking) return;
      isLooking = true;
      hosts.#looking = hosts
        .#look()
        .catch((error: unknown) => say(`a host could not look after its pods: ${String(error)}`))
        .finally(() => (isLooking = false));
    };
    hosts.#timer = setInterval(look, LOOK_MS);
    return hosts;
  }

  /** Everything that pods have printed. */
  get output(): string {
    return this.#printed + [...this.#pods.values()].map(({ output }) => output).join('\n');
  }

  /** The process of a pod. */
  podOf({ metadata }: Anything): PodProcess {
    const found = this.#pods.get(metadata.uid);
    if (!found) throw new Error(`${metadata.name} does not run`);
    return found;
  }

  /** Ends all pods, by force. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
    for (const pod of this.#pods.values()) await pod.crash();
  }

  async #register(name: string): Promise<void> {
    const { api, network } = this.#options;
    const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
    (await api.request('POST', '/api/v1/nodes', { body: { metadata: { name, labels } } })).expect(201);
    const now = new Date().toISOString();
    const status = {
      capacity: CAPACITY,
      allocatable: CAPACITY,
      addresses: [
        { type: 'InternalIP', address: network.host },
        { type: 'Hostname', address: name },
      ],
      conditions: [
        { type: 'Ready', status: 'True', reason: 'StandIn', lastHeartbeatTime: now, lastTransitionTime: now },
      ],
    };
    const answer = await api.request('PATCH', `/api/v1/nodes/${name}/status`, { body: { status }, headers: MERGE });
    answer.expect(200);
  }

  async #renew(): Promise<void> {
    if (Date.now() - this.#renewedMs < LEASE_MS) return;
    this.#renewedMs = Date.now();
    // With the six digits that leases want.
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    for (const name of this.#names) {
      const body = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name },
        spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime },
      };
      const path = `${LEASES}/${name}?fieldManager=stand-in&force=true`;
      await this.#options.api.request('PATCH', path, { body, headers: APPLY });
    }
  }

  async #look(): Promise<void> {
    await this.#renew();
    const { items } = (await this.#options.api.request('GET', '/api/v1/pods')).expect(200).json;
    const own: Anything[] = items.filter(({ spec }: Anything) => this.#names.includes(spec.nodeName));
    const uids = new Set(own.map(({ metadata }) => metadata.uid));
    for (const uid of this.#pods.keys()) if (!uids.has(uid)) await this.#forget(uid);
    await Promise.all(own.map((pod) => (pod.metadata.deletionTimestamp ? this.#end(pod) : this.#keep(pod))));
  }

  async #keep(pod: Anything): Promise<void> {
    const { directory } = this.#options;
    const { uid } = pod.metadata;
    let running = this.#pods.get(uid);
    if (!running) {
      running = await PodProcess.start(pod, { ...this.#options, directory: join(directory, uid) });
      this.#pods.set(uid, running);
    }
    await this.#tell(pod, running, await running.isReady());
  }

  async #tell(pod: Anything, { place, restarts }: PodProcess, isReady: boolean): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    const said = `${restarts} ${isReady}`;
    if (this.#told.get(uid) === said) return;
    const now = new Date().toISOString();
    const [{ name: container, image }] = pod.spec.containers;
    const state = { running: { startedAt: now } };
    const ready = isReady ? 'True' : 'False';
    const conditions = Object.entries({ Initialized: 'True', ContainersReady: ready, Ready: ready });
    const status = {
      phase: 'Running',
      hostIP: this.#options.network.host,
      podIP: place.address,
      podIPs: [{ ip: place.address }],
      startTime: pod.status.startTime ?? now,
      conditions: conditions.map(([type, value]) => ({ type, status: value, lastTransitionTime: now })),
      containerStatuses: [
        { name: container, image, imageID: image, ready: isReady, started: true, restartCount: restarts, state },
      ],
    };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/status`;
    const answer = await this.#options.api.request('PATCH', path, { body: { status }, headers: MERGE });
    // One that has just been removed needs no status.
    if (answer.status !== 404) answer.expect(200);
    this.#told.set(uid, said);
  }

  async #end({ metadata: { name, namespace, uid } }: Anything): Promise<void> {
    await this.#forget(uid);
    const body = { gracePeriodSeconds: 0, preconditions: { uid } };
    await this.#options.api.request('DELETE', `/api/v1/namespaces/${namespace}/pods/${name}`, { body });
  }

  async #forget(uid: string): Promise<void> {
    const pod = this.#pods.get(uid);
    if (!pod) return;
    await pod.end();
    this.#printed += pod.output;
    this.#pods.delete(uid);
  }
}
