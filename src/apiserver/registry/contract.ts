/** What the rest of the API server may ask of the registry; `Registry` implements it. */

import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { UserInfo } from '../http/message.ts';

/** Who writes, and how. Warnings collect here and reach the client as `Warning` headers. */
export interface WriteContext {
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** The name that managed fields are recorded under. */
  readonly fieldManager: string;
  readonly warnings: string[];
  readonly signal: AbortSignal;
  /** Set for writes of the server itself and for those whose request was admitted as something else (an Eviction, a Binding). */
  readonly isAdmitted?: boolean;
  /** Set for what the server does to carry out a request for something else: nobody comes to own what it writes. */
  readonly isUntracked?: boolean;
  /** Set for server-side apply: the object brings its managed fields. */
  readonly isApply?: boolean;
}

/** Which object; `namespace` is empty for cluster-scoped kinds, `name` for a create with generateName. */
export interface Target {
  readonly definition: ResourceDefinition;
  readonly namespace: string;
  readonly name: string;
  /**
   * The subresource through which the write comes: `status`, `scale`, `ephemeralcontainers`... A write through
   * `binding` may change any field of a pod: node name, conditions, annotations at once.
   */
  readonly subresource?: string;
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground';
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

export interface AdmissionAttributes {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly target: Target;
  /** Plug-ins that mutate change this object in place. Undefined for DELETE. */
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  /** CreateOptions, UpdateOptions, PatchOptions or DeleteOptions, as webhooks see them. */
  readonly options: KubeObject | undefined;
  readonly context: WriteContext;
}

/** A step of admission. Mutating steps all run before the first validating one. */
export interface AdmissionPlugin {
  readonly name: string;
  handles(attributes: AdmissionAttributes): boolean;
  /** May change `attributes.object`. Throws an ApiError to refuse. Answers a promise only if it has to wait. */
  mutate?(attributes: AdmissionAttributes): Promise<void> | void;
  /** Throws an ApiError to refuse. Likewise. */
  validate?(attributes: AdmissionAttributes): Promise<void> | void;
  /**
   * The last word on a creation, in the very turn in which it is staged: what it rests on cannot change any more
   * before the object is there. Throws an ApiError to refuse.
   */
  confirm?(attributes: AdmissionAttributes): void;
}

/** Parsed objects of one bucket, in step with every commit: what an acknowledged write says is visible here. */
export interface View<T extends KubeObject = KubeObject> {
  get(namespace: string, name: string): T | undefined;
  /** All, or those of one namespace, in order of their keys. Callers do not change what they get. */
  list(namespace?: string): readonly T[];
  /** Called after each change, in order of commits. */
  onChange(listener: (object: T | undefined, old: T | undefined) => void): void;
}

export interface Registry {
  /** The served resource of a bucket in its storage version, or of a group, version and plural. */
  definition(group: string, version: string, plural: string): ResourceDefinition | undefined;
  /** Every served resource, for discovery and OpenAPI. */
  definitions(): readonly ResourceDefinition[];
  /** Called after a CRD has added, changed or removed definitions. */
  onDefinitionsChange(listener: () => void): void;
  /** A view of a bucket (`pods`, `deployments.apps`); the same one each time. Memory: a parsed copy of what is looked at. */
  view<T extends KubeObject = KubeObject>(bucket: string): View<T>;
  /** The newest durable state, as a copy that the caller may change. */
  read(target: Target): KubeObject | undefined;
  /** A newer state than the durable one that is on its way to the disk; undefined where there is none, or the end. */
  pending(bucket: string, namespace: string, name: string): KubeObject | undefined;
  /** Defaults, admission, validation, storage. Throws ApiErrors. Answers what was stored. */
  create(context: WriteContext, target: Target, object: KubeObject): Promise<KubeObject>;
  /**
   * Applies `change` to a copy of the newest state, then validates, admits and stores it. Runs `change` again when
   * another write comes between; an answer that carries an older resourceVersion is then refused with 409.
   */
  update(
    context: WriteContext,
    target: Target,
    change: (current: KubeObject) => KubeObject | Promise<KubeObject>,
  ): Promise<KubeObject>;
  /** Graceful, finalizer-aware deletion. `gone` tells whether the object has left the store. */
  delete(context: WriteContext, target: Target, options: DeleteOptions): Promise<{ object: KubeObject; gone: boolean }>;
}
