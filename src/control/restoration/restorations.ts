import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import { ApiError } from '../../api/status.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { kubeVirts } from '../../kube/kubevirt-resources.ts';
import type { Service } from '../../kube/service.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { stillUnheard } from '../../migration/right-to-run/restoration.ts';
import type { ControlContext } from '../context.ts';
import { nodes } from '../resources.ts';

/** There is one of it in a cluster. */
const KEY = 'restoration';
/** How soon it is looked again when somebody else wrote at the same time. */
const RECHECK_MS = 1000;

/**
 * Keeps the list of nodes that are still to be heard since the data of the API was restored
 * (`status.restoration` of the KubeVirt resource): agents start nothing before it is empty.
 */
export class Restorations implements Service {
  readonly name = 'restorations';
  readonly #context: ControlContext;
  readonly #kubeVirts: Informer<KubeVirt>;
  readonly #nodes: Informer<Node>;
  readonly #controller: Controller;

  constructor(context: ControlContext) {
    const { env, informers, metrics } = context;
    this.#context = context;
    this.#kubeVirts = informers.of(kubeVirts);
    this.#nodes = informers.of(nodes);
    this.#controller = new Controller({
      name: 'restorations',
      env,
      reconcile: (_, signal) => this.#reconcile(signal),
      ...(metrics ? { metrics } : {}),
    });
    const wake = (): void => {
      if (this.#unsettled()) this.#controller.enqueue(KEY);
    };
    this.#kubeVirts.onChange(wake);
    this.#nodes.onChange(wake);
  }

  run(signal: AbortSignal): Promise<void> {
    this.#controller.enqueue(KEY);
    return this.#controller.run(signal);
  }

  /** The configuration, while there are nodes to be heard. */
  #unsettled(): KubeVirt | undefined {
    const [kubeVirt] = this.#kubeVirts.list();
    return (kubeVirt?.status?.restoration?.unheard ?? []).length > 0 ? kubeVirt : undefined;
  }

  async #reconcile(signal: AbortSignal): Promise<Result | void> {
    const kubeVirt = this.#unsettled();
    const { restoration } = kubeVirt?.status ?? {};
    if (!kubeVirt || !restoration) return;
    const unheard = stillUnheard(restoration, (name) => this.#nodes.get(name));
    const { namespace = '', name = '', resourceVersion = '' } = kubeVirt.metadata;
    const patch = statusPatch(kubeVirt, { restoration: { ...restoration, unheard: [...unheard] } });
    if (!patch) return;
    // Of the very list that was looked at: another restoration may have begun since.
    const body = { ...patch, metadata: { resourceVersion } };
    const { client, recorder } = this.#context;
    try {
      await client.patch(kubeVirts, namespace, name, { type: 'merge', body }, signal, { subresource: 'status' });
    } catch (error) {
      if (!(error instanceof ApiError && (error.code === 404 || error.code === 409))) throw error;
      return { requeueAfterMs: RECHECK_MS };
    }
    if (unheard.length === 0)
      recorder.event(kubeVirt, 'Normal', 'AllNodesHeard', 'All nodes were heard since the restore: guests start again');
  }
}
