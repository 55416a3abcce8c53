import type { KubeObject } from '../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../api/resource.ts';
import { ApiError, badRequest, methodNotAllowed, pathNotFound } from '../api/status.ts';
import type { Env } from '../env/ports.ts';
import { readObject } from './endpoints/body.ts';
import { type Call, writeContext } from './endpoints/context.ts';
import { negotiate, PLAIN, respond, warningHeaders } from './endpoints/negotiate.ts';
import type { ResourceEndpoints } from './endpoints/resources.ts';
import { type Action, serveAction, serveScale } from './endpoints/subresources.ts';
import type { ApiRequest, ApiResponse, RequestInfo, UserInfo } from './http/message.ts';
import type { Target } from './registry/contract.ts';
import type { ResourceRegistry } from './registry/registry.ts';

/** Which code answers a request for a resource. */

/** A kind that is asked and never stored: reviews. */
export type Question = (user: UserInfo, object: KubeObject) => Promise<KubeObject>;

export interface RouterOptions {
  readonly env: Env;
  readonly registry: ResourceRegistry;
  readonly endpoints: ResourceEndpoints;
  /** By `bucket/subresource`, e.g. `pods/eviction`. */
  readonly actions: ReadonlyMap<string, Action>;
  /** By bucket, e.g. `tokenreviews.authentication.k8s.io`. */
  readonly questions: ReadonlyMap<string, Question>;
  readonly scale: ResourceDefinition;
  /** Subresources that somebody else answers, in a form of its own; by `bucket/subresource`. */
  readonly connections: ReadonlyMap<string, (call: Call) => Promise<ApiResponse>>;
}

/** Subresources that are the whole object through a narrower door; the registry knows their rules. */
const WHOLE_OBJECT: ReadonlySet<string> = new Set(['status', 'finalize', 'approval', 'ephemeralcontainers']);

export class Router {
  readonly #options: RouterOptions;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /** Whether the resource of this request is served here. */
  serves(info: RequestInfo): boolean {
    return this.#options.registry.definition(info.group, info.version, info.resource) !== undefined;
  }

  /** Answers a request for a served resource, or throws. */
  async serve(request: ApiRequest, info: RequestInfo, user: UserInfo): Promise<ApiResponse> {
    const definition = this.#options.registry.definition(info.group, info.version, info.resource);
    if (!definition) throw pathNotFound();
    if (!isMethodOf(info))
      throw new ApiError(
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
        {},
      );
    const call: Call = {
      request,
      info,
      user,
      target: targetOf(definition, info),
      representation: this.#isConnection(definition, info) ? PLAIN : negotiate(request.headers['accept']),
    };
    const response = await this.#answer(call);
    return definition.deprecation === undefined ? response : warned(response, definition.deprecation);
  }

  #isConnection(definition: ResourceDefinition, info: RequestInfo): boolean {
    return this.#options.connections.has(`${bucketOf(definition)}/${info.subresource}`);
  }

  async #answer(call: Call): Promise<ApiResponse> {
    const { info } = call;
    const { definition } = call.target;
    const question = this.#options.questions.get(bucketOf(definition));
    if (question) return this.#ask(call, question);
    if (info.subresource !== '') return this.#serveSubresource(call);
    if (definition.verbs && !definition.verbs.some((verb) => verb === info.verb)) throw methodNotAllowed();
    return this.#options.endpoints.serve(call);
  }

  async #serveSubresource(call: Call): Promise<ApiResponse> {
    const { definition, subresource } = call.target;
    const { env, registry, actions, endpoints, scale, connections } = this.#options;
    const found = definition.subresources?.find((each) => each.name === subresource);
    // Only proxies have paths below them.
    if (!found || call.info.name === '' || (call.info.rest !== '' && subresource !== 'proxy')) throw pathNotFound();
    if (!found.verbs.some((verb) => verb === call.info.verb)) throw methodNotAllowed();
    const connection = connections.get(`${bucketOf(definition)}/${subresource}`);
    if (connection) return connection(call);
    const action = actions.get(`${bucketOf(definition)}/${subresource}`);
    if (action) return serveAction(call, registry, found, action);
    if (subresource === 'scale') return serveScale(call, registry, scale, env.clock.now());
    if (WHOLE_OBJECT.has(found.name)) return endpoints.serve(call);
    throw pathNotFound();
  }

  async #ask(call: Call, question: Question): Promise<ApiResponse> {
    const { definition } = call.target;
    if (call.info.verb !== 'create') throw methodNotAllowed();
    const context = writeContext(call);
    const object = await readObject(call, context.warnings);
    if (definition.namespaced) object.metadata.namespace ??= call.target.namespace;
    return respond(call.representation, 201, JSON.stringify(await question(call.user, object)), context.warnings);
  }
}

/** Whether the method is one for this kind of path: what is named cannot be created, what is not cannot be changed. */
function isMethodOf({ verb, name, subresource }: RequestInfo): boolean {
  if (verb === 'create') return name === '' || subresource !== '';
  return verb !== '' && (name !== '' || (verb !== 'update' && verb !== 'patch'));
}

function targetOf(definition: ResourceDefinition, info: RequestInfo): Target {
  const isNamespace = info.group === '' && info.resource === 'namespaces';
  // A namespace is in itself, and in no other.
  const isIn = info.namespace !== '' && !(isNamespace && info.name === info.namespace);
  if (!definition.namespaced && isIn) throw pathNotFound();
  const needsNamespace = definition.namespaced && !['list', 'watch', 'deletecollection'].includes(info.verb);
  if (needsNamespace && info.namespace === '' && info.verb === 'create') throw methodNotAllowed();
  if (needsNamespace && info.namespace === '')
    throw badRequest('an empty namespace may not be set when a resource name may be provided');
  // That of a list is only what its selector says.
  const name = info.verb === 'list' || info.verb === 'watch' ? '' : info.name;
  // It would mean something else to whoever decodes it once more.
  if (name.includes('%')) throw badRequest(`Name parameter invalid: ${JSON.stringify(name)}: may not contain '%'`);
  return {
    definition,
    namespace: definition.namespaced ? info.namespace : '',
    name,
    ...(info.subresource === '' ? {} : { subresource: info.subresource }),
  };
}

/** The answer with one more warning, before those that it has. */
function warned(response: ApiResponse, warning: string): ApiResponse {
  const others = [response.headers['warning'] ?? []].flat();
  const { warning: own = [] } = warningHeaders([warning]);
  return { ...response, headers: { ...response.headers, warning: [...own, ...others] } };
}
