import type { Env } from '../env/ports.ts';
import { extensionServices } from '../extension/extension.ts';
import { Manager } from '../kube/manager.ts';
import { type ClusterProcessOptions, runForCluster } from './cluster-process.ts';
import { UserError } from './failure.ts';
import type { ListenAddress } from './up.ts';
import { VERSION } from './version.ts';

/** `godwit extension`: webhooks and subresources of a Kubernetes cluster. All replicas serve, and say the same. */

export interface ExtensionCommandOptions extends ClusterProcessOptions {
  readonly listen: ListenAddress;
  /** The port of its Service, where it has one that API servers reach it by; otherwise they reach it where it listens. */
  readonly servicePort?: number;
}

/** As KubeVirt's signs what it writes. */
const FIELD_MANAGER = 'virt-api';
const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** Serves and keeps itself registered; ends at SIGTERM or SIGINT. */
export async function extension(
  options: ExtensionCommandOptions,
  env: Env,
  print: (line: string) => void,
): Promise<void> {
  const { listen, servicePort } = options;
  if (servicePort === undefined && WILDCARDS.has(listen.host))
    throw new UserError(
      `API servers cannot reach ${listen.host}: give --listen an address of this machine, or --service-port`,
      { exitCode: 2 },
    );
  const reach = servicePort === undefined ? 'address' : { servicePort };
  await runForCluster({ name: 'extension', options, fieldManager: FIELD_MANAGER }, env, async (self, signal) => {
    const { access } = self;
    const services = extensionServices({ ...self, listen, reach, version: VERSION });
    const manager = new Manager({ env, name: 'extension' }).add(...services);
    void manager.synced.then(() => print(`Webhooks and subresources for ${access.server}.`));
    await manager.run(signal);
  });
}
