import type { Duplex } from 'node:stream';
import { builtinDefinitions } from '../api/kinds/builtins.ts';
import { bucketOf, type ResourceDefinition } from '../api/resource.ts';
import { ApiError } from '../api/status.ts';
import type { Env } from '../env/ports.ts';
import { admissionPlugins } from './admission/plugins.ts';
import { withConditionValidation } from './admission/webhooks/condition-validation.ts';
import type { WebhookTransport } from './admission/webhooks/transport.ts';
import { AdmissionChain } from './admission/chain.ts';
import { Aggregator } from './aggregation/aggregator.ts';
import type { BackendTransport } from './aggregation/backend.ts';
import { LocalApiServices } from './aggregation/local-services.ts';
import { refuse } from './aggregation/upgrade.ts';
import { Authenticator } from './auth/authenticate.ts';
import { BearerTokens } from './auth/bearer-tokens.ts';
import { AuthorizerChain, NodeAuthorizer } from './auth/node-authorizer.ts';
import { NodePods } from './auth/node-pods.ts';
import { type Authorizer, RbacAuthorizer } from './auth/rbac.ts';
import { RoleAggregation } from './auth/role-aggregation.ts';
import { ServiceAccountTokens } from './auth/tokens.ts';
import { bootstrap } from './bootstrap.ts';
import { CustomResources } from './custom-resources/controller.ts';
import { customResourceDefinitionStrategy } from './custom-resources/strategy.ts';
import { Discovery } from './discovery/discovery.ts';
import { OpenApiV2 } from './discovery/openapi-v2.ts';
import { OpenApiV3 } from './discovery/openapi-v3.ts';
import { ResourceEndpoints } from './endpoints/resources.ts';
import type { ApiRequest, ApiResponse, RequestInfo, UserInfo } from './http/message.ts';
import { errorResponse } from './http/outgoing.ts';
import { actions, scaleDefinition } from './kinds/actions.ts';
import { CertificateSigner } from './kinds/certificate-signer.ts';
import { reviews } from './kinds/reviews.ts';
import { proxyToNode } from './nodes/node-proxy.ts';
import { podLog } from './nodes/pod-log.ts';
import { NonResources } from './non-resources.ts';
import type { AuditLog } from './observability/audit.ts';
import { ApiServerMetrics } from './observability/metrics.ts';
import { Pipeline } from './pipeline.ts';
import type { ClusterPki } from './pki/cluster-pki.ts';
import { decodeStored } from './registry/codec.ts';
import { Catalog } from './registry/catalog.ts';
import { EventExpiry } from './registry/event-expiry.ts';
import { ResourceRegistry } from './registry/registry.ts';
import { Router } from './router.ts';
import { ServerWrites } from './server-writes.ts';
import type { Store } from './storage/store.ts';
import { KUBERNETES_VERSION } from './version.ts';

/**
 * The API server without its sockets and disks: everything between a request and the store, wired. Those come in
 * through ports, so that a simulation can run this very code.
 */

export interface CoreOptions {
  readonly env: Env;
  readonly store: Store;
  readonly pki: ClusterPki;
  /** What tokens name as their issuer, and are meant for. */
  readonly issuer: string;
  readonly webhookTransport: WebhookTransport;
  readonly backendTransport: BackendTransport;
  /** How nodes' own servers are reached; without it, what they would have to be asked for is not served. */
  readonly nodeTransport?: BackendTransport;
  readonly audit?: AuditLog;
  /** What others in this process count, in Prometheus' text format; rendered along with the server's own. */
  readonly moreMetrics?: () => Promise<string>;
  /** Whether the cluster's own loops run beside it, and make the default account of each namespace. */
  readonly hasDefaultAccounts?: boolean;
}

const CUSTOM_RESOURCE_DEFINITIONS = 'customresourcedefinitions.apiextensions.k8s.io';

/** Built-in kinds whose behaviour needs more than the language of the API can say. */
function completed(definition: ResourceDefinition): ResourceDefinition {
  if (bucketOf(definition) === CUSTOM_RESOURCE_DEFINITIONS)
    return { ...definition, strategy: customResourceDefinitionStrategy };
  if (definition.group === 'admissionregistration.k8s.io') return withConditionValidation(definition);
  return definition;
}

/** The registry and those whom it asks: admission, which in turn asks who may do what, which the registry knows. */
function makeRegistry(
  { env, store, webhookTransport, hasDefaultAccounts = false }: CoreOptions,
  catalog: Catalog,
  metrics: ApiServerMetrics,
): { readonly registry: ResourceRegistry; readonly roles: RbacAuthorizer; readonly authorizer: Authorizer } {
  let roles: RbacAuthorizer | undefined;
  let authorizer: Authorizer | undefined;
  const registry = new ResourceRegistry({
    env,
    store,
    catalog,
    admission: (unguarded) => {
      roles = new RbacAuthorizer(unguarded);
      authorizer = new AuthorizerChain(new NodeAuthorizer(new NodePods(store), unguarded), roles);
      return new AdmissionChain(
        admissionPlugins({
          env,
          registry: unguarded,
          roles,
          authorizer,
          transport: webhookTransport,
          observer: (observation) => metrics.webhookCalled(observation),
          afterMutation: (definition, object) => registry.reshape(definition, object),
          hasDefaultAccounts,
        }),
      );
    },
  });
  if (!authorizer || !roles) throw new Error('the registry makes its admission chain at once');
  return { registry, roles, authorizer };
}

export class ApiServerCore {
  readonly registry: ResourceRegistry;
  readonly #options: CoreOptions;
  readonly #stopping = new AbortController();
  readonly #writes: ServerWrites;
  readonly #pipeline: Pipeline;
  readonly #router: Router;
  readonly #aggregator: Aggregator;
  readonly #discovery: Discovery;
  readonly #openApi: readonly (OpenApiV2 | OpenApiV3)[];
  readonly #nonResources: NonResources;
  readonly #controllers: readonly { run(signal: AbortSignal): Promise<void> }[];
  #running: Promise<unknown> = Promise.resolve();
  #isReady = false;

  constructor(options: CoreOptions) {
    this.#options = options;
    const { env, store, pki, issuer, backendTransport, audit } = options;
    const metrics = new ApiServerMetrics(env.clock, () =>
      store.buckets().map((bucket) => ({ bucket, count: store.count(bucket) })),
    );
    const catalog = new Catalog(builtinDefinitions.map(completed));
    const { registry, roles, authorizer } = makeRegistry(options, catalog, metrics);
    this.registry = registry;
    this.#writes = new ServerWrites(registry, this.#stopping.signal);
    const customResources = this.#customResources(catalog);
    this.#aggregator = this.#makeAggregator(backendTransport);
    const tokens = new ServiceAccountTokens({
      env,
      registry,
      keyPem: pki.serviceAccountKeyPem,
      issuer,
      audiences: [issuer],
    });
    const bearerTokens = new BearerTokens({ clock: env.clock, registry, serviceAccounts: tokens });
    this.#router = new Router({
      env,
      registry,
      endpoints: new ResourceEndpoints({ env, store, registry, authorizer }),
      actions: actions({ env, registry, tokens }),
      questions: reviews({ authorizer, roles, tokens: bearerTokens, clock: env.clock }),
      scale: scaleDefinition,
      connections: this.#connections(),
    });
    const source = {
      definitions: () => registry.definitions(),
      onDefinitionsChange: (listener: () => void) => registry.onDefinitionsChange(listener),
      remotes: () => this.#aggregator.remotes(),
      onRemotesChange: (listener: () => void) => this.#aggregator.onRemotesChange(listener),
      version: KUBERNETES_VERSION.gitVersion,
    };
    this.#discovery = new Discovery(source);
    this.#openApi = [new OpenApiV3(source), new OpenApiV2(source)];
    this.#nonResources = new NonResources({
      metrics,
      moreMetrics: options.moreMetrics,
      tokens,
      isReady: () => this.#isReady,
      groupPaths: () => this.#discovery.paths(),
    });
    this.#pipeline = new Pipeline({
      env,
      authenticator: new Authenticator({ log: env.log, tokens: bearerTokens, authorizer }),
      authorizer,
      route: (request, info, user) => this.#route(request, info, user),
      serves: (info) => info.isResource && this.#router.serves(info),
      metrics,
      ...(audit ? { audit } : {}),
    });
    const signer = new CertificateSigner({ env, registry, authorizer, authority: pki.clusterAuthority });
    const roleAggregation = new RoleAggregation({ registry, roles, log: env.log });
    const expiry = this.#eventExpiry();
    this.#controllers = [customResources, this.#aggregator, this.#localServices(), signer, roleAggregation, expiry];
  }

  /** Makes what every cluster has, and starts the server's own controllers. Ready when it resolves. */
  async start(): Promise<void> {
    await bootstrap(this.registry, this.#options.pki, this.#writes.context);
    this.#running = Promise.all(this.#controllers.map((controller) => controller.run(this.#stopping.signal)));
    this.#isReady = true;
  }

  /** Ends the controllers; requests under way may still finish. */
  async stop(): Promise<void> {
    this.#isReady = false;
    this.#stopping.abort();
    await this.#running;
  }

  /** Answers a request; never rejects. */
  handle(request: ApiRequest): Promise<ApiResponse> {
    return this.#pipeline.handle(request);
  }

  /** Takes over a connection that asked for an upgrade. */
  async upgrade(request: ApiRequest, socket: Duplex, head: Buffer): Promise<void> {
    try {
      const user = await this.#pipeline.admit(request);
      await this.#aggregator.upgrade(request, user, socket, head);
    } catch (error) {
      const { status, headers, body } = errorResponse(ApiError.from(error));
      const bytes = Buffer.from(body as string);
      await refuse(socket, status, { ...headers, 'content-length': String(bytes.length) }, [bytes]);
    }
  }

  async #route(request: ApiRequest, info: RequestInfo, user: UserInfo): Promise<ApiResponse> {
    // A group that an APIService sends elsewhere is served there, discovery of it excepted: that is merged here.
    if (info.isResource && this.#aggregator.owns(info.path)) return this.#aggregator.proxy(request, user);
    if (info.isResource) return this.#router.serve(request, info, user);
    const path = info.path.length > 1 ? info.path.replace(/\/$/, '') : info.path;
    const documented =
      this.#discovery.handle(request, path) ??
      this.#openApi.map((each) => each.handle(request, path)).find((answer) => answer !== undefined);
    if (documented) return documented;
    if (this.#aggregator.owns(path)) return this.#aggregator.proxy(request, user);
    return this.#nonResources.handle(request, path);
  }

  #connections(): ConstructorParameters<typeof Router>[0]['connections'] {
    const { nodeTransport: transport, pki } = this.#options;
    if (!transport) return new Map();
    const nodes = { registry: this.registry, transport, authority: pki.clusterAuthority.certificatePem };
    return new Map([
      ['pods/log', (call) => podLog(nodes, call)],
      ['nodes/proxy', (call) => proxyToNode(nodes, call)],
    ]);
  }

  #customResources(catalog: Catalog): CustomResources {
    const { registry } = this;
    const { env, store } = this.#options;
    const crds = this.#definition('apiextensions.k8s.io', 'customresourcedefinitions');
    const customResources = new CustomResources(env, {
      crds: registry.view(CUSTOM_RESOURCE_DEFINITIONS),
      builtins: catalog.all(),
      objects: (definition) =>
        store.list(bucketOf(definition), {}).items.map((stored) => {
          const { namespace = '', name = '', deletionTimestamp } = decodeStored(definition, stored).metadata;
          return { namespace, name, terminating: deletionTimestamp !== undefined };
        }),
      deleteObject: (definition, namespace, name) => this.#writes.delete(definition, namespace, name),
      updateStatus: (name, change) => this.#writes.updateStatus(crds, name, change),
      removeFinalizer: (name, finalizer) => this.#writes.removeFinalizer(crds, name, finalizer),
    });
    catalog.setCustom(customResources.definitions());
    customResources.onChange(() => catalog.setCustom(customResources.definitions()));
    return customResources;
  }

  #makeAggregator(transport: BackendTransport): Aggregator {
    const { registry } = this;
    const apiServices = this.#definition('apiregistration.k8s.io', 'apiservices');
    return new Aggregator(this.#options.env, {
      apiServices: registry.view(bucketOf(apiServices)),
      services: registry.view('services'),
      endpoints: registry.view('endpoints'),
      transport,
      updateStatus: (name, change) => this.#writes.updateStatus(apiServices, name, change),
    });
  }

  #localServices(): LocalApiServices {
    const { registry } = this;
    const apiServices = this.#definition('apiregistration.k8s.io', 'apiservices');
    const ports = {
      definitions: () => registry.definitions(),
      onDefinitionsChange: (listener: () => void) => registry.onDefinitionsChange(listener),
      apiServices: registry.view(bucketOf(apiServices)),
      create: (object: Parameters<ServerWrites['create']>[1]) => this.#writes.create(apiServices, object),
      delete: (name: string) => this.#writes.delete(apiServices, '', name),
    };
    return new LocalApiServices(ports, this.#options.env.log);
  }

  #eventExpiry(): EventExpiry {
    const { env, store } = this.#options;
    const definition = this.#definition('', 'events');
    const { context } = this.#writes;
    const remove = async (namespace: string, name: string, resourceVersion: string): Promise<void> => {
      await this.registry.delete(context, { definition, namespace, name }, { preconditions: { resourceVersion } });
    };
    return new EventExpiry({ env, store, remove });
  }

  #definition(group: string, plural: string): ResourceDefinition {
    const definition = this.registry.definition(group, 'v1', plural);
    if (!definition) throw new Error(`${plural}.${group} are not built in`);
    return definition;
  }
}
