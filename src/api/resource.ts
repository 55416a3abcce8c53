import type { FieldError } from './field-error.ts';
import type { KubeObject } from './meta.ts';
import type { Schema } from './schema.ts';

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

export const ALL_VERBS: readonly Verb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

/** A column of `kubectl get`. Built-ins compute cells; custom resources name a JSONPath. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format?: string;
  readonly description?: string;
  /** 0 is always shown, more only with `-o wide`. */
  readonly priority?: number;
  readonly jsonPath?: string;
  readonly cell?: (object: KubeObject, nowMs: number) => string | number | boolean | null;
}

/** A subresource as discovery lists it; its behaviour lives in the API server. */
export interface SubresourceDefinition {
  readonly name: string;
  /** The kind it takes and answers, where that is not its parent's. */
  readonly kind?: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly Verb[];
  /** The schema of the body, where it is not its parent's. */
  readonly schema?: Schema;
}

/**
 * The pure behaviour of a kind around its schema. All functions change the object they are given and
 * none looks at anything else; the registry calls them in the order of this interface.
 */
export interface Strategy {
  /** Fills what the schema's static defaults cannot: defaults that depend on other fields. */
  applyDefaults?(object: KubeObject): void;
  /** Sets or clears what the server owns on create (a fresh status, for example). */
  prepareForCreate?(object: KubeObject): void;
  /** The same on an update of the main resource. The registry has already restored the status from `old`. */
  prepareForUpdate?(object: KubeObject, old: KubeObject): void;
  /** The same on an update of `status`. The registry has already restored all but the status. */
  prepareForStatusUpdate?(object: KubeObject, old: KubeObject): void;
  /**
   * The same on a write through another door (`finalize`, `ephemeralcontainers`): restores what that door does not
   * open. Where a kind has none, such a write may change anything.
   */
  prepareForSubresourceUpdate?(subresource: string, object: KubeObject, old: KubeObject): void;
  /**
   * What the schema cannot say. Runs on create and on every update, after the schema's own validation. What an update has left as it
   * was is the very same in both objects.
   */
  validate?(object: KubeObject, old?: KubeObject): FieldError[];
  /** Immutable fields and forbidden transitions of the main resource. */
  validateUpdate?(object: KubeObject, old: KubeObject): FieldError[];
  /** The same for an update of `status`. */
  validateStatusUpdate?(object: KubeObject, old: KubeObject): FieldError[];
  /** The same for a write through another door. */
  validateSubresourceUpdate?(subresource: string, object: KubeObject, old: KubeObject): FieldError[];
  /** Warnings for the `Warning` header. */
  warnings?(object: KubeObject, old: KubeObject | undefined): string[];
}

/** A served resource: one group, version and plural. CRDs become these too. */
export interface ResourceDefinition {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  /** Default: all verbs. */
  readonly verbs?: readonly Verb[];
  /** Of the whole object, `metadata` included as a plain object. */
  readonly schema: Schema;
  /** Main updates cannot touch `status`, status updates nothing else. */
  readonly hasStatus: boolean;
  /** Whether metadata.generation counts changes of everything but metadata and status. */
  readonly hasGeneration: boolean;
  readonly subresources?: readonly SubresourceDefinition[];
  readonly columns: readonly Column[];
  /** Paths that field selectors may use besides metadata.name and metadata.namespace, e.g. `spec.nodeName`. */
  readonly selectableFields?: readonly string[];
  /** Where a selectable field is kept under another path than its name: the first of these that is not empty. */
  readonly selectableAliases?: { readonly [field: string]: readonly string[] };
  readonly strategy?: Strategy;
  /** Whether a PUT of what is not there creates it; default: it is refused with 404. */
  readonly createsOnUpdate?: boolean;
  /**
   * Whether a PUT must say which resourceVersion it replaces, so that nobody overwrites what he has not seen. Custom
   * resources always ask for it; other kinds only where this is set.
   */
  readonly needsResourceVersion?: boolean;
  /** Names may be anything that is one path segment (RBAC); default: DNS-1123 subdomains. */
  readonly nameRule?: 'dns-subdomain' | 'dns-label' | 'path-segment';
  /** The `scale` subresource's paths, for CRDs that have one. */
  readonly scale?: {
    readonly specReplicasPath: string;
    readonly statusReplicasPath: string;
    readonly labelSelectorPath?: string;
  };
  /** What every request for this resource is warned of, where its version is deprecated. */
  readonly deprecation?: string;
  /** True for kinds that come from a CRD: their unknown fields follow the CRD's rules, strategic merge is refused. */
  readonly custom?: boolean;
  /**
   * Objects stored before this revision may lack what the schema fills in, or have what it no longer knows: they are
   * pruned and defaulted when they are read. Custom resources only.
   */
  readonly shapedSince?: number;
  /**
   * Set where this is another face of a kind that is stored elsewhere (`events.k8s.io` is stored as core events).
   * Both functions change the object they are given; apiVersion and kind are the registry's affair.
   */
  readonly storage?: {
    readonly group: string;
    readonly plural: string;
    readonly toStorage: (object: KubeObject) => void;
    readonly fromStorage: (object: KubeObject) => void;
  };
}

/** Where a resource's objects are stored: served versions of one kind share it. */
export function bucketOf(definition: Pick<ResourceDefinition, 'group' | 'plural' | 'storage'>): string {
  const { group, plural } = definition.storage ?? definition;
  return group === '' ? plural : `${plural}.${group}`;
}
