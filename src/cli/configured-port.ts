import type { KubeVirt } from '../api/kubevirt/kube-virt.ts';
import type { Env } from '../env/ports.ts';
import { unlessAborted } from '../kube/abort.ts';
import type { Client } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import { kubeVirts } from '../kube/kubevirt-resources.ts';
import { SYNCHRONIZATION_PORT } from '../sync/wire/address.ts';

/** The port that the configuration gives to the synchronization controller; undefined where it says none that there is. */
export function configuredPort(spec: KubeVirt['spec'] | undefined): number | undefined {
  const text = spec?.synchronizationPort ?? '';
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port > 0 && port < 65_536 ? port : undefined;
}

/**
 * Has work done on the port that the configuration says, and begun anew on another one when it says so. Work ends, without
 * an error, when its signal aborts; where it fails nothing is followed any more.
 */
export async function followPort(
  client: Client,
  env: Env,
  signal: AbortSignal,
  work: (port: number, until: AbortSignal) => Promise<void>,
): Promise<void> {
  const informer = new Informer({ client, env, resource: kubeVirts });
  const wanted = (): number => configuredPort([...informer.list()][0]?.spec) ?? SYNCHRONIZATION_PORT;
  let [port, other] = [0, new AbortController()];
  informer.onChange(() => {
    if (port !== 0 && wanted() !== port) other.abort();
  });
  const leaving = new AbortController();
  const following = informer.run(AbortSignal.any([signal, leaving.signal]));
  try {
    await unlessAborted(informer.synced, signal);
    while (!signal.aborted) {
      [port, other] = [wanted(), new AbortController()];
      await work(port, AbortSignal.any([signal, other.signal]));
    }
  } finally {
    leaving.abort();
    await following;
  }
}
