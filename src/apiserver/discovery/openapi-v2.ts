import type { ResourceDefinition } from '../../api/resource.ts';
import { ApiError } from '../../api/status.ts';
import type { ApiRequest, ApiResponse } from '../http/message.ts';
import { covers, parseAccept } from '../http/accept.ts';
import { render, type RenderedDocument, respond } from './document.ts';
import { type Operation, operationsOf, type Parameter } from './openapi-operations.ts';
import { Components } from './openapi-schemas.ts';
import type { Published } from './openapi-well-known.ts';
import { encodeOpenApiV2 } from './openapi-v2-protobuf.ts';
import type { OpenApiSource } from './openapi-v3.ts';

const PATH = '/openapi/v2';
const JSON_TYPE = 'application/json';
const PROTOBUF_TYPE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
/** What kubectl asks for; `@` is not allowed in a media type, so the answer is labelled differently. */
const PROTOBUF_TYPE_ASKED = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';

type Form = 'json' | 'protobuf';

/** Serves OpenAPI v2, one document for everything: as JSON, or in protobuf, which older kubectl insists on. */
export class OpenApiV2 {
  readonly #source: Omit<OpenApiSource, 'remotes'>;
  readonly #rendered = new Map<Form, RenderedDocument>();

  constructor(source: Omit<OpenApiSource, 'remotes'>) {
    this.#source = source;
    source.onDefinitionsChange(() => this.#rendered.clear());
  }

  /** Answers `/openapi/v2`; undefined for other paths. */
  handle(request: ApiRequest, path: string): ApiResponse | undefined {
    if (path !== PATH) return undefined;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new ApiError(
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
        {},
      );
    }
    const form = formOf(request);
    if (!form) {
      const types = `${JSON_TYPE}, ${PROTOBUF_TYPE}`;
      throw new ApiError(406, 'NotAcceptable', `only the following media types are accepted: ${types}`);
    }
    const type = form === 'json' ? JSON_TYPE : PROTOBUF_TYPE;
    return respond(request, this.#document(form), { 'content-type': type });
  }

  #document(form: Form): RenderedDocument {
    const known = this.#rendered.get(form);
    if (known) return known;
    const built = documentOf(this.#source.definitions(), this.#source.version);
    const document = render(form === 'json' ? built : encodeOpenApiV2(built));
    this.#rendered.set(form, document);
    return document;
  }
}

function formOf(request: ApiRequest): Form | undefined {
  const ranges = parseAccept(request.headers['accept']);
  if (ranges.length === 0) return 'json';
  for (const range of ranges) {
    if (covers(range, JSON_TYPE)) return 'json';
    if (range.type === PROTOBUF_TYPE || range.type === PROTOBUF_TYPE_ASKED) return 'protobuf';
  }
  return undefined;
}

function documentOf(definitions: readonly ResourceDefinition[], version: string): Published {
  const components = new Components('v2');
  const paths: Published = {};
  for (const definition of definitions) {
    for (const operation of operationsOf(definition, components)) {
      const item = (paths[operation.path] ??= {}) as Published;
      item[operation.method] = operationObject(operation, components);
    }
  }
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version },
    paths,
    definitions: components.toJSON(),
  };
}

function operationObject(operation: Operation, components: Components): Published {
  const { body, response } = operation;
  const schema = response === undefined ? { type: 'string' } : components.reference(response);
  const bodyParameter = body && {
    name: 'body',
    in: 'body',
    ...(body.isRequired ? { required: true } : {}),
    schema: components.reference(body.component),
  };
  return {
    tags: [operation.tag],
    description: operation.description,
    operationId: operation.id,
    consumes: body?.types ?? ['*/*'],
    produces: [JSON_TYPE],
    parameters: [...operation.parameters.map(parameterObject), ...(bodyParameter ? [bodyParameter] : [])],
    responses: Object.fromEntries(operation.statuses.map((status) => [status, { description: 'Success', schema }])),
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': operation.kind,
  };
}

function parameterObject({ name, in: place, type, description }: Parameter): Published {
  return { name, in: place, type, description, uniqueItems: true, ...(place === 'path' ? { required: true } : {}) };
}
