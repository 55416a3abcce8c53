import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { ApiError } from '../../api/status.ts';
import type { KubeObject } from '../../api/meta.ts';
import { configMaps, namespaces, secrets, serviceAccounts } from '../../cluster/resources.ts';
import {
  controllerRevisions,
  INSTANCETYPES,
  persistentVolumeClaims,
  PREFERENCES,
  storageClasses,
} from '../../control/resources.ts';
import type { Client } from '../../kube/client.ts';
import {
  kubeVirts,
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { listTrust } from '../../sync/trust/administration.ts';
import { UserError } from '../failure.ts';
import type { Place } from './receiving-machine.ts';
import { referencesOf } from './references.ts';
import type { MoveRequest, SeenMove, SeenSizing, SeenSource, SeenTarget, TrustState } from './seen.ts';

/** Looks at both sides of a move. Changes nothing. */

/** How to talk to the two sides, which may be one cluster. */
export interface Sides {
  readonly source: Client;
  readonly target: Client;
  readonly nowMs: number;
}

/** Rejects with UserError where there is no such machine, and with what servers answer unless that is that one may not look. */
export async function lookAtMove(request: MoveRequest, sides: Sides, signal: AbortSignal): Promise<SeenMove> {
  const [here, there] = [new Looker(sides.source, signal), new Looker(sides.target, signal)];
  const machine = await here.find(virtualMachines, request.from);
  if (!machine && here.denied.length === 0)
    throw new UserError(
      `there is no virtual machine ${request.from.name} in ${request.from.namespace}; 'kubectl get vm -n ${request.from.namespace}' lists all there are`,
    );
  if (!machine) throw new UserError(`you may not ${here.denied.join(', nor ')}`);
  const [sourceId, targetId] = [await here.clusterId(), await there.clusterId()];
  const isSameCluster = sides.source === sides.target || (sourceId !== undefined && sourceId === targetId);
  const trust = async (looker: Looker, peer: string | undefined): Promise<TrustState> =>
    isSameCluster ? 'Trusted' : looker.trust(peer, sides.nowMs);
  const source: SeenSource = {
    ...(await seenSide(here, request.from, [machine])),
    machine,
    clusterId: sourceId,
    trust: await trust(here, targetId),
    denied: here.denied,
  };
  const target = await seenTarget(there, request, machine);
  return {
    request,
    source,
    target: { ...target, clusterId: targetId, trust: await trust(there, sourceId), denied: there.denied },
    isSameCluster,
  };
}

async function seenTarget(
  there: Looker,
  { to }: MoveRequest,
  coming: VirtualMachine,
): Promise<Omit<SeenTarget, 'clusterId' | 'trust' | 'denied'>> {
  const namespace = await there.namespace(to.namespace);
  const machine = await there.find(virtualMachines, to);
  const accounts = new Set<string>();
  for (const name of referencesOf(coming).serviceAccounts)
    if (await there.find(serviceAccounts, { ...to, name })) accounts.add(name);
  const classes = await there.list(storageClasses, '');
  const side = await seenSide(there, to, machine ? [coming, machine] : [coming]);
  return {
    ...side,
    machine,
    namespace,
    serviceAccounts: accounts,
    storageClasses: classes && new Map(classes.map((each) => [each.metadata.name ?? '', each])),
    addresses: there.kubeVirt?.status?.synchronizationAddresses ?? [],
  };
}

/** What a side has of all that machines refer to. */
async function seenSide(looker: Looker, place: Place, machines: readonly VirtualMachine[]) {
  const { namespace } = place;
  const [newest] = machines.slice(-1);
  const references = machines.map((machine) => referencesOf(machine));
  const named = async <T extends KubeObject>(resource: Resource<T>, names: Iterable<string>) => {
    const found = new Map<string, T>();
    for (const name of new Set(names)) {
      const object = await looker.find(resource, { namespace, name });
      if (object) found.set(name, object);
    }
    return found;
  };
  const names = (each: readonly { readonly name: string }[]): string[] => each.map(({ name }) => name);
  return {
    claims: await named(
      persistentVolumeClaims,
      references.flatMap(({ claims }) => names(claims)),
    ),
    secrets: (await named(
      secrets,
      references.flatMap((each) => names(each.secrets)),
    )) as ReadonlyMap<string, KubeObject>,
    configMaps: (await named(
      configMaps,
      references.flatMap((each) => names(each.configMaps)),
    )) as ReadonlyMap<string, KubeObject>,
    instancetype: newest && (await looker.sizing(newest, namespace, 'instancetype', INSTANCETYPES)),
    preference: newest && (await looker.sizing(newest, namespace, 'preference', PREFERENCES)),
    guest: await looker.find(virtualMachineInstances, place),
    configuration: await looker.configuration(),
    migrations: (await looker.list(virtualMachineInstanceMigrations, namespace)) ?? [],
  };
}

/** Reads, and notes what it may not. */
class Looker {
  readonly #client: Client;
  readonly #signal: AbortSignal;
  readonly denied: string[] = [];
  kubeVirt: KubeVirt | undefined;

  constructor(client: Client, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  async find<T extends KubeObject>(resource: Resource<T>, { namespace, name }: Place): Promise<T | undefined> {
    const answer = await unlessDenied(this.#client.find(resource, namespace, name, this.#signal));
    if (answer !== DENIED) return answer;
    this.denied.push(`get ${resource.plural} ${name}${resource.namespaced ? ` in ${namespace}` : ''}`);
    return undefined;
  }

  /** Undefined where it may not be read, which is in nobody's way unless it is a namespace's. */
  async list<T extends KubeObject>(resource: Resource<T>, namespace: string): Promise<readonly T[] | undefined> {
    const answer = await unlessDenied(this.#client.list(resource, { namespace }, this.#signal));
    if (answer !== DENIED) return answer.items;
    if (namespace !== '') this.denied.push(`list ${resource.plural} in ${namespace}`);
    return undefined;
  }

  async namespace(name: string): Promise<KubeObject | undefined | 'unknown'> {
    const answer = await unlessDenied(this.#client.find(namespaces, '', name, this.#signal));
    return answer === DENIED ? 'unknown' : answer;
  }

  /** The UID of kube-system. */
  async clusterId(): Promise<string | undefined> {
    const answer = await this.namespace('kube-system');
    return answer === 'unknown' ? undefined : answer?.metadata.uid;
  }

  async configuration(): Promise<KubeVirt['spec']['configuration']> {
    this.kubeVirt = (await this.list(kubeVirts, ''))?.[0];
    return this.kubeVirt && (this.kubeVirt.spec.configuration ?? {});
  }

  async trust(peer: string | undefined, nowMs: number): Promise<TrustState> {
    if (peer === undefined) return undefined;
    const answer = await unlessDenied(listTrust(this.#client, nowMs, this.#signal));
    return answer === DENIED ? undefined : (answer.find(({ clusterId }) => clusterId === peer)?.state ?? 'None');
  }

  /** What a machine refers to; where it is of a machine that was made already, as it was then. */
  async sizing<T extends KubeObject>(
    { metadata, spec, status }: VirtualMachine,
    namespace: string,
    what: 'instancetype' | 'preference',
    resources: ReadonlyMap<string, Resource<T>>,
  ): Promise<SeenSizing<T> | undefined> {
    const matcher = spec[what];
    const kind = (matcher?.kind || `virtualmachinecluster${what}`).toLowerCase().replace(/s$/, '');
    const resource = resources.get(kind);
    if (!matcher?.name || !resource) return undefined;
    const known = what === 'instancetype' ? status?.instancetypeRef : status?.preferenceRef;
    const revision =
      matcher.revisionName ?? (known?.name === matcher.name ? known.controllerRevisionRef?.name : undefined);
    const kept =
      revision !== undefined && metadata.namespace === namespace
        ? await this.find(controllerRevisions, { namespace, name: revision })
        : undefined;
    const place = { namespace: resource.namespaced ? namespace : '', name: matcher.name };
    const object = (kept?.data as T | undefined) ?? (await this.find(resource, place));
    return { resource, name: matcher.name, object };
  }
}

const DENIED = Symbol('denied');

async function unlessDenied<T>(answer: Promise<T>): Promise<T | typeof DENIED> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return DENIED;
    throw error;
  }
}
