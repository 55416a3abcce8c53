import { clusterServices, inProcessClients } from '../cluster/cluster.ts';
import { controlServices } from '../control/control.ts';
import { install } from '../control/installation/install.ts';
import { CONTROLLER_IDENTITY } from '../control/installation/rights.ts';
import { storageClasses } from '../control/storage/classes.ts';
import type { Env } from '../env/ports.ts';
import { extensionServices } from '../extension/extension.ts';
import { EXTENSION_IDENTITY } from '../extension/identity.ts';
import { Client } from '../kube/client.ts';
import { InProcessTransport, type LocalHandler, type LocalIdentity } from '../kube/in-process-transport.ts';
import type { KubeMetrics } from '../kube/metrics.ts';
import { Loops } from './loops.ts';
import { VERSION } from './version.ts';
import { wholeInstallation } from './whole-installation.ts';

export interface ControlPlaneOptions {
  readonly env: Env;
  readonly metrics: KubeMetrics;
  /** The API server in this process, and the host that it is known by. */
  readonly handle: LocalHandler;
  readonly host: string;
  /** Where volumes are that all nodes of this machine share. */
  readonly sharedPath: string;
  /** Where the extension listens, on this machine alone. */
  readonly extensionPort: number;
}

/** Who may do everything, as in the admin's own kubeconfig. */
const ADMIN: LocalIdentity = { user: 'godwit-up', groups: ['system:masters'] };

/** What runs beside the API server, and a client for whoever sets it up. */
export interface ControlPlane {
  readonly loops: Loops;
  /** May do everything. */
  readonly admin: Client;
}

/**
 * Starts all that runs beside the API server of one machine: what Kubernetes' own controllers do, our own, and the extension.
 * Our kinds and what they need are on the server before anything that rests on them starts.
 */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { env, metrics, handle, host } = options;
  const metered = (transport: InProcessTransport): ReturnType<KubeMetrics['metered']> =>
    metrics.metered(transport, host);
  const clientOf = (identity: LocalIdentity, manager: string): Client =>
    new Client(metered(new InProcessTransport(handle, identity)), manager);
  const admin = clientOf(ADMIN, 'godwit');
  await install(admin, env.clock, wholeInstallation(storageClasses(options.sharedPath)), new AbortController().signal);
  const controller = clientOf(CONTROLLER_IDENTITY, 'virt-controller');
  const extension = clientOf(EXTENSION_IDENTITY, 'virt-api');
  const services = [
    ...clusterServices({ env, metrics, clientOf: inProcessClients(handle, (it) => metrics.metered(it, host)) }),
    ...controlServices({
      env,
      metrics,
      client: controller,
      launcherImage: `godwit/launcher:v${VERSION}`,
      apiServerHost: new URL(`https://${host}`).hostname,
    }),
    ...extensionServices({
      env,
      client: extension,
      metrics,
      listen: { host: '127.0.0.1', port: options.extensionPort },
      reach: 'address',
      version: VERSION,
    }),
  ];
  return { loops: new Loops(env, services), admin };
}
