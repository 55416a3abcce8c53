import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Resource } from '../../kube/resource.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';

/** Which nodes take no pods, and so are being emptied: whoever changes their mind uncordons them. */
export interface Cordons {
  isCordoned(node: string, signal: AbortSignal): Promise<boolean>;
}

interface CordonedNode extends KubeObject {
  spec?: { readonly unschedulable?: boolean };
}

const nodes: Resource<CordonedNode> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

/** The few nodes that are cordoned are watched, and no others. */
const SCOPE = { fieldSelector: 'spec.unschedulable=true' };

/**
 * The cordons of a cluster. That a node is cordoned is believed of the watch: of a thousand evictions of one drain none has
 * to ask. Where that is late the node was uncordoned this very moment, and a mark that is a drain's goes with the drain;
 * whoever meant something else is told to ask again, as everybody is. That it is not is believed of the server alone, since
 * those who drain cordon and evict in one breath.
 */
export class WatchedCordons implements Cordons {
  /** Resolves when all are known. */
  readonly synced: Promise<void>;
  readonly #client: Client;
  readonly #cordoned: Informer<CordonedNode>;

  constructor(client: Client, informers: SharedInformers) {
    this.#client = client;
    this.#cordoned = informers.of(nodes, {}, SCOPE);
    this.synced = this.#cordoned.synced;
  }

  async isCordoned(name: string, signal: AbortSignal): Promise<boolean> {
    if (this.#cordoned.get(name)) return true;
    const node = await this.#client.find(nodes, '', name, signal);
    return node?.spec?.unschedulable === true;
  }
}
