import { CONTROLLER_IDENTITY } from '../control/installation/rights.ts';
import { controlServices } from '../control/control.ts';
import { LeaderElector } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import type { Program } from './component.ts';
import type { ObservedCache } from './invariant.ts';
import { cachesOf } from './loops.ts';
import { ADMIN, unending } from './world.ts';

export interface ControlProgramOptions {
  /** The lease that its replicas stand for, where there are several. */
  readonly lease: string | undefined;
  /** Given the caches of each life, to be compared with what is durable. */
  readonly onCaches: (caches: readonly ObservedCache[]) => void;
}

/** A process of Godwit's own controllers, with the rights that they are installed with. */
export function controlProgram({ lease, onCaches }: ControlProgramOptions): Program {
  return async (process, clientOf) => {
    const { env, name } = process;
    const metrics = new KubeMetrics(env.clock);
    const identity = `${name}_${env.random.uuid()}`;
    const elector =
      lease === undefined
        ? undefined
        : new LeaderElector({ client: clientOf(ADMIN), env, namespace: 'kube-system', name: lease, identity, metrics });
    const client = clientOf(CONTROLLER_IDENTITY);
    const services = controlServices({ env, client, metrics, launcherImage: 'model/launcher' });
    onCaches(cachesOf(name, services));
    const manager = new Manager({ env, name, ...(elector ? { elector } : {}) });
    await manager.add(...services).run(unending());
  };
}
