import { isFeatureGateEnabled } from '../../api/kubevirt/feature-gates.ts';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { kubeVirts } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import { statusPatch } from '../../kube/status-patch.ts';

export interface AdvertisementOptions {
  readonly env: Env;
  readonly client: Client;
  readonly informers: SharedInformers;
  /** Where others reach this process, which leads; once that is known. */
  readonly addresses: () => readonly string[];
  /** Resolves when it is. */
  readonly ready: Promise<unknown>;
}

/** Says in the cluster's configuration where its synchronization controller is reached: that is, where its leader is. */
export class Advertisement implements Service {
  readonly name = 'synchronization address';
  readonly needsLeadership = true;
  readonly #options: AdvertisementOptions;
  readonly #kubeVirts: Informer<KubeVirt>;
  readonly #controller: Controller;

  constructor(options: AdvertisementOptions) {
    this.#options = options;
    this.#kubeVirts = options.informers.of(kubeVirts);
    this.#controller = new Controller({
      name: this.name,
      env: options.env,
      reconcile: (key, signal) => this.#reconcile(key, signal),
    });
    this.#kubeVirts.onChange(({ object }) => this.#controller.enqueue(keyOf(object)));
    void this.#enqueueWhenReady();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  async #enqueueWhenReady(): Promise<void> {
    await this.#options.ready;
    for (const each of this.#kubeVirts.list()) this.#controller.enqueue(keyOf(each));
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<void> {
    const kubeVirt = this.#kubeVirts.get(key);
    const addresses = this.#options.addresses();
    if (!kubeVirt || addresses.length === 0) return;
    const isOn = isFeatureGateEnabled('DecentralizedLiveMigration', kubeVirt.spec.configuration);
    const body = statusPatch(kubeVirt, { synchronizationAddresses: isOn ? addresses : undefined });
    if (!body) return;
    const { namespace = '', name = '' } = kubeVirt.metadata;
    const options = { subresource: 'status' };
    try {
      await this.#options.client.patch(kubeVirts, namespace, name, { type: 'merge', body }, signal, options);
    } catch (error) {
      // Somebody else wrote at the same time, or it is gone: we hear of it.
      if (!(error instanceof ApiError) || (error.code !== 409 && error.code !== 404)) throw error;
    }
  }
}
