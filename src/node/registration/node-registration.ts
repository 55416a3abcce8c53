import { AGENT_PORT_ANNOTATION } from '../../api/kubevirt/agent-port.ts';
import { AGENT_KEYS_ANNOTATION, agentKeysText } from '../../api/kubevirt/agent-keys.ts';
import { HEARTBEAT_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { formatTime, type JsonObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { type Env, type HostFacts, type HostIdentity, type HostUsage, sleep } from '../../env/ports.ts';
import { Backoff } from '../../kube/backoff.ts';
import type { Client } from '../../kube/client.ts';
import { setCondition } from '../../kube/conditions.ts';
import { errorText } from '../../kube/error-text.ts';
import { Informer } from '../../kube/informer.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { withinTime } from '../../kube/time-limit.ts';
import type { Node as PlacedNode } from '../../migration/fit/objects.ts';
import { NodeLease } from './node-lease.ts';
import {
  agentIdOf,
  annotationsOf,
  conditionsOf,
  labelChanges,
  labelsOf,
  type NodeAddress,
  type NodeCondition,
  type NodeDevices,
  nodeInfoOf,
  type NodeProfile,
  resourcesOf,
} from './node-object.ts';
import { PressureGauge } from './pressure.ts';

/** A Node as its agent reads and writes it. */
export interface Node extends PlacedNode {
  status?: PlacedNode['status'] & {
    readonly addresses?: readonly NodeAddress[];
    readonly nodeInfo?: Readonly<Record<string, unknown>>;
    readonly daemonEndpoints?: { readonly kubeletEndpoint?: { readonly Port: number } };
  };
}

export const nodeResource: Resource<Node> = {
  group: '',
  version: 'v1',
  plural: 'nodes',
  kind: 'Node',
  namespaced: false,
};

export interface RegistrationOptions {
  readonly env: Env;
  readonly client: Client;
  readonly host: HostFacts;
  readonly profile: NodeProfile;
  /** Its file system is the one whose room is watched. */
  readonly dataDirectory: string;
  /** The port of the agent's own server; undefined for as long as it has none. */
  readonly port: () => number | undefined;
  /** By which keys the agent is known elsewhere; none where absent. */
  readonly agentKeys?: () => readonly string[];
  /** Why the node cannot take pods now; undefined where it can. */
  readonly problem?: () => string | undefined;
}

/**
 * The Node is another agent's: a second machine of the same name, or one that lost its data directory. Both would be the
 * same to everybody else, and each would start the guests that are given to the node.
 */
export class NodeTakenError extends Error {
  constructor(node: string) {
    super(
      `node ${node} is another agent's, with a data directory of its own: give this one another name, ` +
        `or, when that one is gone for good and none of its guests runs, 'kubectl delete node ${node}'`,
    );
    this.name = 'NodeTakenError';
  }
}

/** How often the host is looked at: as often as kubelets do. */
const LOOK_MS = 10_000;
/** What changes at once is written in one go, and two writers that disagree do not keep a server busy. */
const PAUSE_MS = 1_000;
/** How often the status is written when nothing has changed. */
const REPORT_MS = 5 * 60_000;
/** How often the heartbeat is written: after five minutes without one the node takes no more guests. */
const HEARTBEAT_MS = 4 * 60_000;
/** A server that takes longer is asked again. */
const LOOK_TIMEOUT_MS = 20_000;
/** A disk that takes longer cannot be worked with. */
const USAGE_TIMEOUT_MS = 5_000;
const BACKOFF = { baseMs: 500, maxMs: LOOK_MS };

/** The services that keep a node registered and alive, in the order in which they are to be started. */
export function registrationServices(options: RegistrationOptions): {
  readonly registration: NodeRegistration;
  readonly services: readonly Service[];
} {
  const { env, client, profile } = options;
  const node = new Informer({ env, client, resource: nodeResource, fieldSelector: `metadata.name=${profile.name}` });
  const registration = new NodeRegistration(options, node);
  if (profile.hasKubelet) return { registration, services: [node, registration] };
  const lease = new NodeLease({ env, client, name: profile.name, registration });
  return { registration, services: [node, registration, lease] };
}

/**
 * Keeps a Node object that says what this host is and whether it takes pods: makes it where there is none, and corrects
 * what is the agent's to say. What others say (a cordon, taints, labels, conditions) is left alone. The Node of a kubelet is not
 * made, and its status is the kubelet's: there the agent says by labels and annotations alone that it takes guests.
 */
export class NodeRegistration implements Service {
  readonly name = 'registration of the node';
  readonly needsLeadership = false;
  /** Resolves once there is a Node object that has this agent's word. */
  readonly registered: Promise<void>;
  /** The Node object as it was last seen. */
  readonly node: Informer<Node>;
  readonly #options: RegistrationOptions;
  readonly #pressure = new PressureGauge();
  readonly #backoff: Backoff;
  #host: { readonly identity: HostIdentity; readonly devices: NodeDevices } | undefined;
  #disk: HostUsage['disk'] | undefined;
  #asking: Promise<HostUsage> | undefined;
  #isRegistered = false;
  #reportAtMs = Number.NEGATIVE_INFINITY;
  #resolveRegistered: () => void = () => undefined;
  #wake: () => void = () => undefined;

  constructor(options: RegistrationOptions, node: Informer<Node>) {
    this.node = node;
    this.#options = options;
    this.#backoff = new Backoff(options.env.random, BACKOFF);
    this.registered = new Promise((resolve) => (this.#resolveRegistered = resolve));
    node.onChange(() => this.#wake());
  }

  /** The UID of the Node object; undefined while there is none. */
  get uid(): string | undefined {
    return this.node.get(this.#options.profile.name)?.metadata.uid;
  }

  /** Looks again at once: the port is known now, or what was in the way of taking pods is not any more. */
  refresh(): void {
    this.#wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { env } = this.#options;
    await this.#synced(signal);
    while (!signal.aborted) {
      const nap = new AbortController();
      const stop = (): void => nap.abort();
      // From here on: what is heard while a look is under way is looked at by the next one.
      this.#wake = stop;
      signal.addEventListener('abort', stop, { once: true });
      let waitMs = LOOK_MS;
      try {
        await withinTime(env.clock, LOOK_TIMEOUT_MS, signal, (within) => this.#look(within));
        this.#backoff.reset();
      } catch (error) {
        // Who was the node before looks after its guests yet.
        if (error instanceof NodeTakenError && !this.#isRegistered) throw error;
        waitMs = this.#backoff.next();
        if (!signal.aborted) env.log.warn('cannot say how the node is', { error: errorText(error) });
      }
      await sleep(env.clock, Math.min(PAUSE_MS, waitMs), signal);
      if (!signal.aborted) await sleep(env.clock, Math.max(0, waitMs - PAUSE_MS), nap.signal);
      signal.removeEventListener('abort', stop);
    }
  }

  async #synced(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) resolve();
      void this.node.synced.then(resolve);
    });
  }

  /** One look: makes the object what it should be, with as few writes as that takes. */
  async #look(signal: AbortSignal): Promise<void> {
    const { client, profile, host } = this.#options;
    this.#host ??= {
      identity: await host.identity(),
      devices: { tun: await host.canOpen('/dev/net/tun'), vhostNet: await host.canOpen('/dev/vhost-net') },
    };
    const usage = await this.#usage(signal);
    const problem = usage instanceof Error ? usage.message : this.#options.problem?.();
    const labels = labelsOf(profile, this.#host.identity, problem === undefined);
    const node = this.node.get(profile.name) ?? (profile.hasKubelet ? undefined : await this.#create(labels, signal));
    // Somebody made it meanwhile, or is about to; the informer will say so.
    if (!node) return;
    const agentId = agentIdOf(node);
    if (profile.agentId !== undefined && agentId !== undefined && agentId !== profile.agentId)
      throw new NodeTakenError(profile.name);
    const metadata = this.#metadataPatch(node, labels);
    const patched = metadata
      ? await unless(
          [404, 409],
          client.patch(nodeResource, '', profile.name, { type: 'merge', body: metadata }, signal),
        )
      : node;
    // Gone or another one since; the informer is about to say so.
    if (!patched) return;
    const isSaid =
      profile.hasKubelet || (await this.#report(patched, usage instanceof Error ? undefined : usage, problem, signal));
    if (!isSaid) return;
    this.#isRegistered = true;
    this.#resolveRegistered();
  }

  async #create(labels: Record<string, string>, signal: AbortSignal): Promise<Node | undefined> {
    const { client, env, profile } = this.#options;
    const annotations = { ...this.#annotations(), [HEARTBEAT_ANNOTATION]: formatTime(env.clock.now()) };
    const metadata = { name: profile.name, labels, annotations };
    const { taints = [] } = profile;
    const node: Node = { apiVersion: 'v1', kind: 'Node', metadata, ...(taints.length > 0 ? { spec: { taints } } : {}) };
    const made = await unless([409], client.create(nodeResource, node, signal));
    if (made) env.log.info('registered the node', { node: profile.name });
    return made;
  }

  async #usage(signal: AbortSignal): Promise<HostUsage | Error> {
    const { env, host, dataDirectory } = this.#options;
    // One question at a time: a file system that hangs would otherwise take one thread after the other.
    this.#asking ??= host.usage(dataDirectory).finally(() => (this.#asking = undefined));
    const asking = this.#asking;
    try {
      return await withinTime(env.clock, USAGE_TIMEOUT_MS, signal, () => asking);
    } catch (error) {
      signal.throwIfAborted();
      return new Error(`the data directory cannot be used: ${errorText(error)}`, { cause: error });
    }
  }

  #annotations(): Record<string, string> {
    const { profile, agentKeys, port } = this.#options;
    const keys = agentKeys?.() ?? [];
    const serving = profile.hasKubelet ? port() : undefined;
    return {
      ...annotationsOf(profile),
      ...(serving === undefined ? {} : { [AGENT_PORT_ANNOTATION]: String(serving) }),
      ...(keys.length === 0 ? {} : { [AGENT_KEYS_ANNOTATION]: agentKeysText(keys) }),
    };
  }

  #metadataPatch(node: Node, wanted: Readonly<Record<string, string>>): JsonObject | undefined {
    const { uid = '', labels = {}, annotations = {}, resourceVersion } = node.metadata;
    const nowMs = this.#options.env.clock.now();
    const known = new Map(Object.entries(annotations));
    const beatMs = Date.parse(known.get(HEARTBEAT_ANNOTATION) ?? '');
    const labelled = labelChanges(labels, wanted);
    const annotated = Object.entries(this.#annotations()).filter(([key, value]) => {
      return known.get(key) !== value;
    });
    const isDue = !(Math.abs(nowMs - beatMs) < HEARTBEAT_MS);
    if (Object.keys(labelled).length === 0 && annotated.length === 0 && !isDue) return undefined;
    const heartbeat = { [HEARTBEAT_ANNOTATION]: formatTime(nowMs) };
    // Of two that would make it theirs at once, one does.
    const unchanged: JsonObject = agentIdOf(node) === undefined && resourceVersion ? { resourceVersion } : {};
    const written = { ...Object.fromEntries(annotated), ...heartbeat };
    return { metadata: { ...unchanged, uid, labels: labelled, annotations: written } };
  }

  /** Answers whether the status is what it should be. */
  async #report(
    node: Node,
    usage: HostUsage | undefined,
    problem: string | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { client, env, profile } = this.#options;
    const nowMs = env.clock.now();
    const isDue = nowMs >= this.#reportAtMs || nowMs < this.#reportAtMs - 2 * REPORT_MS;
    // The size of some file systems changes all the time: it is not worth a write of its own.
    if (usage && (isDue || !this.#disk)) this.#disk = usage.disk;
    const next = this.#status(node, usage, problem, nowMs);
    const patch = statusPatch(node, next);
    if (!patch && !isDue) return true;
    const body = statusPatch(node, { ...next, conditions: this.#beating(next.conditions, nowMs) });
    if (body) {
      const write = { type: 'merge', body } as const;
      const options = { subresource: 'status' };
      const written = await unless([404, 409], client.patch(nodeResource, '', profile.name, write, signal, options));
      // Somebody else has written since, or it is gone: the informer is about to say so, and then it is looked at again.
      if (!written) return false;
    }
    this.#reportAtMs = nowMs + REPORT_MS * (0.9 + 0.2 * env.random.number());
    return true;
  }

  /** What the status should be, as long as nothing happens: without the time. */
  #status(node: Node, usage: HostUsage | undefined, problem: string | undefined, nowMs: number) {
    const { profile, port } = this.#options;
    const { status = {} } = node;
    const { identity, devices } = this.#host ?? raise();
    const resources = this.#disk ? resourcesOf(profile, identity, this.#disk, devices) : undefined;
    const pressures = usage ? this.#pressure.read(usage, nowMs) : [];
    let conditions = (status.conditions ?? []) as readonly NodeCondition[];
    for (const each of conditionsOf(pressures, problem)) conditions = setCondition(conditions, each, nowMs);
    const serving = port();
    return {
      ...(resources
        ? {
            capacity: { ...status.capacity, ...resources.capacity },
            allocatable: { ...status.allocatable, ...resources.allocatable },
          }
        : {}),
      conditions,
      addresses: profile.addresses,
      nodeInfo: { ...status.nodeInfo, ...nodeInfoOf(profile, identity) },
      ...(serving === undefined ? {} : { daemonEndpoints: { kubeletEndpoint: { Port: serving } } }),
    };
  }

  /** The agent's conditions with the time at which they were last said to be so. */
  #beating(conditions: readonly NodeCondition[], nowMs: number): readonly NodeCondition[] {
    const lastHeartbeatTime = formatTime(nowMs);
    return conditions.map((each) => (OWN_CONDITIONS.has(each.type) ? { ...each, lastHeartbeatTime } : each));
  }
}

const OWN_CONDITIONS: ReadonlySet<string> = new Set(['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure']);

function raise(): never {
  throw new Error('the host has not been looked at');
}

/** What the call gives; undefined where it is answered by one of these codes. */
async function unless<T>(codes: readonly number[], call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ApiError && codes.includes(error.code)) return undefined;
    throw error;
  }
}
