import { ALL_VERBS, type ResourceDefinition, type SubresourceDefinition, type Verb } from '../../api/resource.ts';
import { type GroupVersionKind, kindOfSubresource } from './groups.ts';
import type { Components } from './openapi-schemas.ts';

/** What can be asked of a resource, independent of the OpenAPI version that tells it. */

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly type: 'string' | 'integer' | 'boolean';
  readonly description: string;
}

export interface Operation {
  readonly path: string;
  readonly method: Method;
  readonly id: string;
  readonly description: string;
  readonly tag: string;
  /** `x-kubernetes-action`. */
  readonly action: string;
  readonly kind: GroupVersionKind;
  readonly parameters: readonly Parameter[];
  /** The component that the body is, and whether there must be one. */
  readonly body?: { readonly component: string; readonly isRequired: boolean; readonly types: readonly string[] };
  /** The component that is answered; undefined for plain text. */
  readonly response: string | undefined;
  readonly statuses: readonly number[];
}

const query = (name: string, type: Parameter['type'], description: string): Parameter => ({
  name,
  in: 'query',
  type,
  description,
});

const PRETTY = query('pretty', 'string', 'Whether to indent the answer.');
const DRY_RUN = query('dryRun', 'string', 'All: do everything but store the result.');
const FIELD_MANAGER = query('fieldManager', 'string', 'Who makes this change.');
const FIELD_VALIDATION = query('fieldValidation', 'string', 'Unknown and duplicate fields: Ignore, Warn or Strict.');
const FORCE = query('force', 'boolean', 'For apply: take over fields that others own.');
const DELETE = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'Seconds until the object is removed; 0 removes it at once.'),
  query('orphanDependents', 'boolean', 'Superseded by propagationPolicy.'),
  query('propagationPolicy', 'string', 'What becomes of dependents: Orphan, Background or Foreground.'),
];
const SELECT = [
  query('continue', 'string', 'Where the next page starts.'),
  query('fieldSelector', 'string', 'Only objects whose fields match.'),
  query('labelSelector', 'string', 'Only objects whose labels match.'),
  query('limit', 'integer', 'How many objects to answer at most.'),
  query('resourceVersion', 'string', 'Which version of the collection is wanted.'),
  query('resourceVersionMatch', 'string', 'How resourceVersion is meant: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'For watch: whether to begin with what is there.'),
  query('timeoutSeconds', 'integer', 'When to end the request.'),
];
const LIST = [
  ...SELECT,
  query('allowWatchBookmarks', 'boolean', 'For watch: whether to send bookmarks.'),
  query('watch', 'boolean', 'Whether to stream changes instead of answering a list.'),
];
const WRITE = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

const BODY_TYPES = ['application/json', 'application/yaml'];
const CUSTOM_PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/apply-patch+yaml',
];
const PATCH_TYPES = [...CUSTOM_PATCH_TYPES, 'application/strategic-merge-patch+json'];

/** What a verb makes of a path: the HTTP method, what goes in and what comes out. */
interface Shape {
  readonly id: string;
  readonly does: string;
  readonly method: Method;
  readonly action: string;
  readonly on: 'collection' | 'item';
  readonly parameters: readonly Parameter[];
  readonly sends?: 'kind' | 'patch' | 'options';
  readonly answers: 'kind' | 'list' | 'status';
  readonly statuses: readonly number[];
}

/** Watch has no operation of its own: it is a parameter of list. */
const SHAPES: ReadonlyMap<Verb, Shape> = new Map<Verb, Shape>([
  [
    'get',
    {
      id: 'read',
      does: 'read',
      method: 'get',
      action: 'get',
      on: 'item',
      parameters: [],
      answers: 'kind',
      statuses: [200],
    },
  ],
  [
    'list',
    {
      id: 'list',
      does: 'list or watch',
      method: 'get',
      action: 'list',
      on: 'collection',
      parameters: LIST,
      answers: 'list',
      statuses: [200],
    },
  ],
  [
    'create',
    {
      id: 'create',
      does: 'create',
      method: 'post',
      action: 'post',
      on: 'collection',
      parameters: WRITE,
      sends: 'kind',
      answers: 'kind',
      statuses: [200, 201, 202],
    },
  ],
  [
    'update',
    {
      id: 'replace',
      does: 'replace',
      method: 'put',
      action: 'put',
      on: 'item',
      parameters: WRITE,
      sends: 'kind',
      answers: 'kind',
      statuses: [200, 201],
    },
  ],
  [
    'patch',
    {
      id: 'patch',
      does: 'change parts of',
      method: 'patch',
      action: 'patch',
      on: 'item',
      parameters: [...WRITE, FORCE],
      sends: 'patch',
      answers: 'kind',
      statuses: [200, 201],
    },
  ],
  [
    'delete',
    {
      id: 'delete',
      does: 'delete',
      method: 'delete',
      action: 'delete',
      on: 'item',
      parameters: DELETE,
      sends: 'options',
      answers: 'status',
      statuses: [200, 202],
    },
  ],
  [
    'deletecollection',
    {
      id: 'delete',
      does: 'delete all matching',
      method: 'delete',
      action: 'deletecollection',
      on: 'collection',
      parameters: [...DELETE, ...SELECT],
      sends: 'options',
      answers: 'status',
      statuses: [200],
    },
  ],
]);

/** Every operation of a resource and its subresources; the schemas that they use are added to the components. */
export function operationsOf(definition: ResourceDefinition, components: Components): Operation[] {
  const kind = components.addKind(definition);
  const builder = new OperationBuilder(definition, {
    list: components.listName(kind, definition),
    status: components.addStatus(),
    options: components.addDeleteOptions(definition.group, definition.version),
    patch: components.addPatch(),
  });
  const own = (definition.verbs ?? ALL_VERBS).flatMap((verb) => builder.ofResource(verb, kind));
  const sub = (definition.subresources ?? []).flatMap((subresource) => {
    const body = components.addSubresource(definition, subresource) ?? (subresource.kind ? undefined : kind);
    return subresource.verbs.flatMap((verb) => builder.ofSubresource(subresource, verb, body));
  });
  return [...own, ...sub];
}

/** Where an operation is, what it is called, and the kind that it speaks. */
interface Place {
  readonly path: string;
  readonly suffix: string;
  readonly subject: string;
  readonly kind: GroupVersionKind;
  /** The component of the kind; undefined where bodies are not objects. */
  readonly component: string | undefined;
}

class OperationBuilder {
  readonly #definition: ResourceDefinition;
  readonly #components: { readonly [use in 'list' | 'status' | 'options' | 'patch']: string };
  readonly #collection: string;
  readonly #all: string;
  readonly #idGroup: string;
  readonly #tag: string;

  constructor(
    definition: ResourceDefinition,
    components: { [use in 'list' | 'status' | 'options' | 'patch']: string },
  ) {
    const { group, version, plural, namespaced } = definition;
    this.#definition = definition;
    this.#components = components;
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    this.#all = `${root}/${plural}`;
    this.#collection = namespaced ? `${root}/namespaces/{namespace}/${plural}` : this.#all;
    const words = group === '' ? ['core'] : group.replace(/\.k8s\.io$/, '').split(/[.-]/);
    this.#idGroup = `${words.map(capital).join('')}${capital(version)}`;
    this.#tag = `${words[0]}_${version}`;
  }

  ofResource(verb: Verb, component: string): Operation[] {
    const shape = SHAPES.get(verb);
    if (!shape) return [];
    const { group, version, kind, namespaced } = this.#definition;
    const scoped = namespaced ? `Namespaced${kind}` : kind;
    const place = {
      path: shape.on === 'item' ? `${this.#collection}/{name}` : this.#collection,
      suffix: verb === 'deletecollection' ? `Collection${scoped}` : scoped,
      subject: kind,
      kind: { group, version, kind },
      component,
    };
    const own = this.#operation(shape, place);
    if (verb !== 'list' || !namespaced) return [own];
    return [own, this.#operation(shape, { ...place, path: this.#all, suffix: `${kind}ForAllNamespaces` })];
  }

  ofSubresource(subresource: SubresourceDefinition, verb: Verb, component: string | undefined): Operation[] {
    const shape = SHAPES.get(verb);
    if (!shape) return [];
    const { kind, namespaced } = this.#definition;
    const place = {
      path: `${this.#collection}/{name}/${subresource.name}`,
      suffix: `${namespaced ? 'Namespaced' : ''}${kind}${capital(subresource.name)}`,
      subject: `${subresource.name} of ${kind}`,
      kind: kindOfSubresource(this.#definition, subresource),
      component,
    };
    return [this.#operation(shape, place)];
  }

  #operation(shape: Shape, place: Place): Operation {
    const inPath = [...place.path.matchAll(/\{(\w+)\}/g)].map(
      ([, name = '']): Parameter => ({ name, in: 'path', type: 'string', description: `The ${name} of the object.` }),
    );
    const body = this.#body(shape, place.component);
    return {
      path: place.path,
      method: shape.method,
      id: `${shape.id}${this.#idGroup}${place.suffix}`,
      description: `${shape.does} ${place.subject}`,
      tag: this.#tag,
      action: shape.action,
      kind: place.kind,
      parameters: [...inPath, ...shape.parameters, PRETTY],
      ...(body ? { body } : {}),
      response: shape.answers === 'kind' ? place.component : this.#components[shape.answers],
      statuses: shape.statuses,
    };
  }

  #body(shape: Shape, component: string | undefined): Operation['body'] {
    const { sends } = shape;
    if (sends === undefined) return undefined;
    if (sends === 'options') return { component: this.#components.options, isRequired: false, types: BODY_TYPES };
    if (sends === 'patch') {
      const types = this.#definition.custom ? CUSTOM_PATCH_TYPES : PATCH_TYPES;
      return { component: this.#components.patch, isRequired: true, types };
    }
    return component === undefined ? undefined : { component, isRequired: true, types: BODY_TYPES };
  }
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
