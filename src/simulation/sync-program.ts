import { KubeMetrics } from '../kube/metrics.ts';
import { LeaderElector } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import type { Dialer } from '../sync/channel.ts';
import { Synchronizations } from '../sync/controller/synchronizations.ts';
import { SYNCHRONIZATION_IDENTITY } from '../sync/rights.ts';
import type { Program } from './component.ts';
import type { ObservedCache } from './invariant.ts';
import { cachesOf } from './loops.ts';
import { ADMIN, unending } from './world.ts';

export interface SyncProgramOptions {
  /** The lease that its replicas stand for, where there are several. */
  readonly lease: string | undefined;
  /** Given the caches of each life, to be compared with what is durable. */
  readonly onCaches: (caches: readonly ObservedCache[]) => void;
}

/** Where sources of pairs are told to connect to: there is one cluster. */
export const OWN_ADDRESS = 'sync.home:9185';

/** There is nobody else. */
const NOBODY: Dialer = { dial: () => undefined, hangUp: () => undefined, channel: () => undefined };

/** A process of the synchronization controller, with the rights that it is installed with. */
export function syncProgram({ lease, onCaches }: SyncProgramOptions): Program {
  return async (process, clientOf) => {
    const { env, name } = process;
    const metrics = new KubeMetrics(env.clock);
    const identity = `${name}_${env.random.uuid()}`;
    const elector =
      lease === undefined
        ? undefined
        : new LeaderElector({ client: clientOf(ADMIN), env, namespace: 'kube-system', name: lease, identity, metrics });
    const client = clientOf(SYNCHRONIZATION_IDENTITY);
    const informers = new SharedInformers({ client, env });
    const synchronizations = new Synchronizations({
      env,
      client,
      informers,
      metrics,
      clusterId: 'home',
      addresses: () => [OWN_ADDRESS],
      trust: { isRevoked: () => false, release: () => Promise.resolve() },
      connect: () => NOBODY,
    });
    const services = [...informers.all(), synchronizations];
    onCaches(cachesOf(name, services));
    const manager = new Manager({ env, name, ...(elector ? { elector } : {}) });
    await manager.add(...services).run(unending());
  };
}
