import type { KubeObject } from '../api/meta.ts';
import type { Env } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import type { LocalIdentity } from '../kube/in-process-transport.ts';
import { Informer } from '../kube/informer.ts';
import { LeaderElector } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import type { Service } from '../kube/service.ts';
import type { Program } from './component.ts';
import type { ObservedCache } from './invariant.ts';
import type { SimulatedProcess } from './process.ts';
import { ADMIN, unending } from './world.ts';

/** What all programs need that work for a cluster. */
export interface ManagedProgramOptions {
  /** The lease that its replicas stand for, where there are several. */
  readonly lease: string | undefined;
  /** Given the caches of each life, to be compared with what is durable. */
  readonly onCaches: (caches: readonly ObservedCache[]) => void;
}

/** What the services of one life of a program are made of. */
export interface ManagedContext {
  readonly env: Env;
  readonly process: SimulatedProcess;
  readonly clientOf: (identity: LocalIdentity) => Client;
  readonly metrics: KubeMetrics;
}

/** A program of services under a manager, which wait until their process leads where it has replicas. */
export function managedProgram(
  { lease, onCaches }: ManagedProgramOptions,
  servicesOf: (context: ManagedContext) => readonly Service[],
): Program {
  return async (process, clientOf) => {
    const { env, name } = process;
    const metrics = new KubeMetrics(env.clock);
    const identity = `${name}_${env.random.uuid()}`;
    const elector =
      lease === undefined
        ? undefined
        : new LeaderElector({ client: clientOf(ADMIN), env, namespace: 'kube-system', name: lease, identity, metrics });
    const services = servicesOf({ env, process, clientOf, metrics });
    onCaches(cachesOf(name, services));
    const manager = new Manager({ env, name, ...(elector ? { elector } : {}) });
    await manager.add(...services).run(unending());
  };
}

function cachesOf(owner: string, services: readonly Service[]): readonly ObservedCache[] {
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
