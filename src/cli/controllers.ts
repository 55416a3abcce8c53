import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import { controlServices } from '../control/control.ts';
import type { Env } from '../env/ports.ts';
import { LeaderElector } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import { type ClusterProcessOptions, outOfTouch, runForCluster } from './cluster-process.ts';
import { VERSION } from './version.ts';

/** `godwit controllers`: Godwit's own controllers for a Kubernetes cluster. Of several one works, and the others wait. */

export interface ControllersOptions extends ClusterProcessOptions {
  /** The image of launcher pods; this version's where absent. */
  readonly launcherImage?: string;
  /** Whether launcher pods are containers that kubelets run. */
  readonly kubelets?: boolean;
  /** Secrets with which these pull the image. */
  readonly imagePullSecret?: readonly string[];
}

/** As KubeVirt's controllers sign what they write, and name their lease. */
const NAME = 'virt-controller';

/** Stands for the lease, and works while it has it; ends at SIGTERM or SIGINT. */
export async function controllers(options: ControllersOptions, env: Env, print: (line: string) => void): Promise<void> {
  await runForCluster({ name: 'controllers', options, fieldManager: NAME }, env, async (self, signal) => {
    const { access, client, metrics, identity, readyUnless } = self;
    const elector = new LeaderElector({ client, env, namespace: SYSTEM_NAMESPACE, name: NAME, identity, metrics });
    readyUnless(() => outOfTouch(elector));
    const services = controlServices({
      env,
      metrics,
      client,
      launcherImage: options.launcherImage ?? `godwit/launcher:v${VERSION}`,
      kubelets: options.kubelets ? { imagePullSecrets: options.imagePullSecret ?? [] } : undefined,
      apiServerHost: new URL(access.server).hostname,
    });
    print(`Controllers for ${access.server}.`);
    await new Manager({ env, name: 'controllers', elector }).add(...services).run(signal);
  });
}
