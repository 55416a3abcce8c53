import type { ResourceDefinition } from '../../api/resource.ts';
import { ApiError, pathNotFound } from '../../api/status.ts';
import { setOwn } from '../../machinery/clone.ts';
import type { ApiRequest, ApiResponse } from '../http/message.ts';
import { covers, parseAccept } from '../http/accept.ts';
import { render, type RenderedDocument, respond } from './document.ts';
import { byGroupVersion, type RemoteGroupVersion } from './groups.ts';
import { type Operation, operationsOf, type Parameter } from './openapi-operations.ts';
import { Components } from './openapi-schemas.ts';
import type { Published } from './openapi-well-known.ts';

/** What the OpenAPI documents are made from. */
export interface OpenApiSource {
  definitions(): readonly ResourceDefinition[];
  onDefinitionsChange(listener: () => void): void;
  /** Groups that other servers serve; only those that publish a document of their own are listed. */
  remotes(): readonly RemoteGroupVersion[];
  /** What `/version` says, e.g. `v1.34.0`. */
  readonly version: string;
}

const JSON_TYPE = 'application/json';
const ROOT = '/openapi/v3';
const YEAR_SECONDS = 365 * 24 * 60 * 60;

interface Cached {
  readonly definitions: readonly ResourceDefinition[];
  readonly document: RenderedDocument;
}

/**
 * Serves OpenAPI v3: an index, and one document per group and version. A document is built when it is first asked
 * for, and again only when a definition of its own group and version has changed.
 */
export class OpenApiV3 {
  readonly #source: OpenApiSource;
  readonly #documents = new Map<string, Cached>();
  #grouped: ReadonlyMap<string, readonly ResourceDefinition[]> | undefined;

  constructor(source: OpenApiSource) {
    this.#source = source;
    source.onDefinitionsChange(() => {
      this.#grouped = undefined;
    });
  }

  /**
   * Answers `/openapi/v3` and the documents below it; undefined for other paths, and for the documents of groups that
   * are proxied to another server.
   */
  handle(request: ApiRequest, path: string): ApiResponse | undefined {
    if (path !== ROOT && !path.startsWith(`${ROOT}/`)) return undefined;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new ApiError(
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
        {},
      );
    }
    const ranges = parseAccept(request.headers['accept']);
    if (ranges.length > 0 && !ranges.some((range) => covers(range, JSON_TYPE))) {
      throw new ApiError(406, 'NotAcceptable', `only the following media types are accepted: ${JSON_TYPE}`);
    }
    const name = path.slice(ROOT.length + 1).replace(/\/$/, '');
    if (name === '') return respond(request, render(this.#index()), { 'content-type': JSON_TYPE });
    if (this.#remotes().has(name)) return undefined;
    const document = this.#document(name);
    if (!document) throw pathNotFound();
    const hash = request.query.get('hash');
    if (hash && hash !== document.hash) {
      // The client's index is old; this is the document that it would find in a new one.
      return { status: 301, headers: { location: urlOf(name, document.hash) }, body: '' };
    }
    const cache = hash ? `public, immutable, max-age=${YEAR_SECONDS}` : 'no-cache, private';
    return respond(request, document, { 'content-type': JSON_TYPE, 'cache-control': cache });
  }

  #index(): object {
    const hashes = new Map<string, string>();
    for (const name of this.#byName().keys()) hashes.set(name, this.#document(name)?.hash ?? '');
    for (const [name, hash] of this.#remotes()) hashes.set(name, hash);
    const paths: Published = {};
    for (const name of [...hashes.keys()].sort()) {
      setOwn(paths, name, { serverRelativeURL: urlOf(name, hashes.get(name) ?? '') });
    }
    return { paths };
  }

  #remotes(): Map<string, string> {
    const remotes = this.#source.remotes().filter((remote) => remote.openApiHash !== undefined);
    return new Map(remotes.map((remote) => [`apis/${remote.group}/${remote.version}`, remote.openApiHash ?? '']));
  }

  #byName(): ReadonlyMap<string, readonly ResourceDefinition[]> {
    this.#grouped ??= new Map(
      [...byGroupVersion(this.#source.definitions())].map(([key, members]) => [
        key.includes('/') ? `apis/${key}` : `api/${key}`,
        members,
      ]),
    );
    return this.#grouped;
  }

  #document(name: string): RenderedDocument | undefined {
    const definitions = this.#byName().get(name);
    if (!definitions) {
      this.#documents.delete(name);
      return undefined;
    }
    const cached = this.#documents.get(name);
    if (cached && isSame(cached.definitions, definitions)) return cached.document;
    const document = render(documentOf(definitions, this.#source.version));
    this.#documents.set(name, { definitions, document });
    return document;
  }
}

function isSame(a: readonly ResourceDefinition[], b: readonly ResourceDefinition[]): boolean {
  return a.length === b.length && a.every((definition, index) => definition === b[index]);
}

function urlOf(name: string, hash: string): string {
  return `${ROOT}/${name}?hash=${hash}`;
}

function documentOf(definitions: readonly ResourceDefinition[], version: string): object {
  const components = new Components('v3');
  const paths: Published = {};
  for (const definition of definitions) {
    for (const operation of operationsOf(definition, components)) {
      const item = (paths[operation.path] ??= {}) as Published;
      item[operation.method] = operationObject(operation, components);
    }
  }
  return { openapi: '3.0.0', info: { title: 'Kubernetes', version }, paths, components: { schemas: components } };
}

function operationObject(operation: Operation, components: Components): Published {
  const { body, response } = operation;
  const schema = response === undefined ? { type: 'string' } : components.reference(response);
  const content = { [JSON_TYPE]: { schema } };
  const contents = (types: readonly string[], component: string): Published =>
    Object.fromEntries(types.map((type) => [type, { schema: components.reference(component) }]));
  return {
    tags: [operation.tag],
    description: operation.description,
    operationId: operation.id,
    parameters: operation.parameters.map(parameterObject),
    ...(body
      ? {
          requestBody: {
            ...(body.isRequired ? { required: true } : {}),
            content: contents(body.types, body.component),
          },
        }
      : {}),
    responses: Object.fromEntries(operation.statuses.map((status) => [status, { description: 'Success', content }])),
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': operation.kind,
  };
}

function parameterObject(parameter: Parameter): Published {
  return {
    name: parameter.name,
    in: parameter.in,
    description: parameter.description,
    ...(parameter.in === 'path' ? { required: true } : {}),
    schema: { type: parameter.type, uniqueItems: true },
  };
}
