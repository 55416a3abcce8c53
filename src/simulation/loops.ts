import type { KubeObject } from '../api/meta.ts';
import { clusterServices } from '../cluster/cluster.ts';
import type { ClusterLoop } from '../cluster/loop.ts';
import { Informer } from '../kube/informer.ts';
import { LeaderElector } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import type { Service } from '../kube/service.ts';
import type { Program } from './component.ts';
import type { ObservedCache } from './invariant.ts';
import { ADMIN, unending } from './world.ts';

export interface LoopProgramOptions {
  readonly loops: readonly ClusterLoop[];
  /** The lease that its replicas stand for, where there are several. */
  readonly lease: string | undefined;
  /** Given the caches of each life, to be compared with what is durable. */
  readonly onCaches: (caches: readonly ObservedCache[]) => void;
}

/** A process of the cluster's own loops, with informers and a manager of its own. */
export function loopProgram({ loops, lease, onCaches }: LoopProgramOptions): Program {
  return async (process, clientOf) => {
    const { env, name } = process;
    const metrics = new KubeMetrics(env.clock);
    const identity = `${name}_${env.random.uuid()}`;
    const elector =
      lease === undefined
        ? undefined
        : new LeaderElector({ client: clientOf(ADMIN), env, namespace: 'kube-system', name: lease, identity, metrics });
    const services = clusterServices({ env, clientOf, metrics, loops });
    onCaches(cachesOf(name, services));
    const manager = new Manager({ env, name, ...(elector ? { elector } : {}) });
    await manager.add(...services).run(unending());
  };
}

/** The caches among the services of a process. */
export function cachesOf(owner: string, services: readonly Service[]): readonly ObservedCache[] {
  return services.filter((service) => service instanceof Informer).map((informer) => cacheOf(owner, informer));
}

const PREFIX = 'informer of ';

function cacheOf(owner: string, informer: Informer<KubeObject>): ObservedCache {
  if (!informer.name.startsWith(PREFIX)) throw new Error(`what is the ${informer.name} about?`);
  return {
    owner,
    bucket: informer.name.slice(PREFIX.length),
    isWhole: informer.isWhole,
    get: (key) => informer.get(key),
    list: () => informer.list(),
  };
}
