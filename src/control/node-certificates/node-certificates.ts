import { ACCELERATOR_LABEL } from '../../api/kubevirt/node-labels.ts';
import { formatTime, type KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { errorMessage } from '../../api/error-message.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { NODE_USER_PREFIX } from '../../machinery/node-user.ts';
import { type CertificateRequest, parseCertificateRequest } from '../../machinery/x509/certificate-request.ts';
import { NODE_SERVING_SIGNER } from '../../machinery/x509/node-certificates.ts';
import type { ControlContext } from '../context.ts';
import { servingObjection } from './decide.ts';

interface CertificateSigningRequest extends KubeObject {
  spec: {
    readonly request: string;
    readonly signerName: string;
    readonly usages?: readonly string[];
    readonly username?: string;
    readonly groups?: readonly string[];
  };
  status?: {
    readonly certificate?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

interface Node extends KubeObject {
  status?: { readonly addresses?: readonly { readonly address: string }[] };
}

const requests: Resource<CertificateSigningRequest> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
};
interface ClusterService extends KubeObject {
  spec?: { readonly clusterIPs?: readonly string[] };
}

interface EndpointSlice extends KubeObject {
  endpoints?: readonly { readonly addresses?: readonly string[] }[] | null;
}

const nodes: Resource<Node> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };
const services: Resource<ClusterService> = {
  group: '',
  version: 'v1',
  plural: 'services',
  kind: 'Service',
  namespaced: true,
};
const endpointSlices: Resource<EndpointSlice> = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  namespaced: true,
};

/** As the API server calls its own service, and the addresses behind it. */
const API_SERVER = { namespace: 'default', name: 'kubernetes' } as const;

export interface NodeCertificatesOptions extends ControlContext {
  /** The host by which the API server is reached, where it is known from elsewhere. */
  readonly apiServerHost?: string | undefined;
}

/**
 * Approves the certificates with which nodes that have an agent serve: its consoles and logs. A request that cannot be
 * approved waits, for its Node to say more or for somebody else, as do all those of other kubelets.
 */
export class NodeCertificates implements Service {
  readonly name = 'node certificates';
  readonly #env: Env;
  readonly #client: Client;
  readonly #apiServerHost: string | undefined;
  readonly #requests: Informer<CertificateSigningRequest>;
  readonly #nodes: Informer<Node>;
  readonly #controller: Controller;

  constructor({ env, client, informers, metrics, apiServerHost }: NodeCertificatesOptions) {
    this.#env = env;
    this.#client = client;
    this.#apiServerHost = apiServerHost;
    this.#requests = informers.of(requests, { open: openRequester });
    this.#nodes = informers.of(nodes);
    this.#controller = new Controller({
      name: 'node-certificate-approver',
      env,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#requests.onChange(({ object }) => {
      if (openRequester(object).length > 0) this.#controller.enqueue(object.metadata.name ?? '');
    });
    // A node asks as soon as it is there, perhaps before we have heard of its addresses, or of its agent.
    this.#nodes.onChange(({ object }) => {
      if (!hasAgent(object)) return;
      const requester = `${NODE_USER_PREFIX}${object.metadata.name ?? ''}`;
      for (const { metadata } of this.#requests.byIndex('open', requester))
        this.#controller.enqueue(metadata.name ?? '');
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<void> {
    const object = this.#requests.get(name);
    if (!object || openRequester(object).length === 0) return;
    const objection = await this.#objection(object, signal);
    if (objection !== undefined) {
      this.#env.log.debug('a node waits for its serving certificate', { request: name, objection });
      return;
    }
    try {
      await this.#client.update(requests, this.#approved(object), signal, { subresource: 'approval' });
    } catch (error) {
      // It is gone, or somebody has decided meanwhile: then that counts, and we hear of it.
      if (!(error instanceof ApiError && (error.code === 404 || error.code === 409))) throw error;
    }
  }

  async #objection({ spec }: CertificateSigningRequest, signal: AbortSignal): Promise<string | undefined> {
    let request: CertificateRequest;
    try {
      request = await parseCertificateRequest(Buffer.from(spec.request, 'base64').toString());
    } catch (error) {
      return errorMessage(error);
    }
    const { username = '', groups = [], usages = [] } = spec;
    return servingObjection(
      { username, groups, usages, request },
      {
        addressesOf: (name) => {
          const node = this.#nodes.get(name);
          return node && hasAgent(node) ? (node.status?.addresses ?? []).map(({ address }) => address) : undefined;
        },
        isNode: (name) => this.#nodes.get(name) !== undefined,
        apiServerAddresses: await this.#apiServerAddresses(signal),
      },
    );
  }

  async #apiServerAddresses(signal: AbortSignal): Promise<readonly string[]> {
    const [service, slice] = await Promise.all([
      this.#ofApiServer(services, signal),
      this.#ofApiServer(endpointSlices, signal),
    ]);
    return [
      ...(this.#apiServerHost === undefined ? [] : [this.#apiServerHost]),
      ...(service?.spec?.clusterIPs ?? []),
      ...(slice?.endpoints ?? []).flatMap(({ addresses = [] }) => addresses),
    ];
  }

  /** Not every API server tells of itself. */
  async #ofApiServer<T extends KubeObject>(resource: Resource<T>, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await this.#client.get(resource, API_SERVER.namespace, API_SERVER.name, signal);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return undefined;
      throw error;
    }
  }

  /** With the version that was looked at: what is approved is what was read. */
  #approved(object: CertificateSigningRequest): CertificateSigningRequest {
    const now = formatTime(this.#env.clock.now());
    const approval = {
      type: 'Approved',
      status: 'True',
      reason: 'AutoApproved',
      message: 'The node asks for itself, with its own addresses.',
      lastUpdateTime: now,
      lastTransitionTime: now,
    };
    return { ...object, status: { ...object.status, conditions: [...(object.status?.conditions ?? []), approval] } };
  }
}

/** Who waits for a decision on this request; nobody where it is not one of ours, or decided. */
function openRequester({ spec, status }: CertificateSigningRequest): string[] {
  const isOpen = !status?.certificate && (status?.conditions ?? []).length === 0;
  return isOpen && spec.signerName === NODE_SERVING_SIGNER && spec.username ? [spec.username] : [];
}

/**
 * An agent's, alone or beside a kubelet: it writes this before it asks. What other kubelets ask for is for whoever approves it there. The
 * two of one node are one user with one name, and cannot be told apart.
 */
function hasAgent({ metadata }: Node): boolean {
  return metadata.labels?.[ACCELERATOR_LABEL] !== undefined;
}
