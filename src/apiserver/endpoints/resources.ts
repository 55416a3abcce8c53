import { apiVersionOf, type KubeObject } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { ApiError, conflict, methodNotAllowed, notFound, type Status, withoutEmpty } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import { clone } from '../../machinery/clone.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { forbiddenError } from '../auth/forbidden.ts';
import type { Authorizer } from '../auth/rbac.ts';
import { isTrue } from '../http/request-info.ts';
import type { ApiResponse } from '../http/message.ts';
import { decodeStored, textFor } from '../registry/codec.ts';
import type { DeleteOptions, Target, WriteContext } from '../registry/contract.ts';
import { deletionWarnings } from '../registry/deletion.ts';
import { alignIdentity } from '../registry/preparation.ts';
import type { ResourceRegistry, Written } from '../registry/registry.ts';
import type { Store, Stored } from '../storage/store.ts';
import { readObject } from './body.ts';
import { type Call, writeContext } from './context.ts';
import { readDeleteOptions } from './delete-options.ts';
import { answerList } from './list.ts';
import { type PageRequest, readPage } from './page.ts';
import { refuseFuture, revisionOf } from './list-options.ts';
import { respond } from './negotiate.ts';
import { readPatch } from './patch.ts';
import { respondObject } from './respond-object.ts';
import { answerWatch } from './watch.ts';
import { writeOptionsOf } from './write-options.ts';

/** How often an object that comes and goes is created or updated before its client hears of it. */
const CREATE_ATTEMPTS_MAX = 5;

/** Deletions of one collection under way at once, so that they share their commits. */
const DELETIONS_AT_ONCE = 64;

/** Kinds whose deletion is answered with what was deleted; that of others with a word that it was. */
const RETURNED_WHEN_DELETED: ReadonlySet<string> = new Set([
  'namespaces',
  'persistentvolumeclaims',
  'persistentvolumes',
  'pods',
  'podtemplates',
  'resourcequotas',
  'serviceaccounts',
  'services',
  'storageclasses.storage.k8s.io',
]);

/** The REST verbs on stored objects and on their `status`: HTTP in, registry calls, HTTP out. */
export class ResourceEndpoints {
  readonly #env: Env;
  readonly #store: Store;
  readonly #registry: ResourceRegistry;
  readonly #authorizer: Authorizer;
  readonly #customWatches = new Map<ResourceDefinition, Set<() => void>>();

  constructor(options: { env: Env; store: Store; registry: ResourceRegistry; authorizer: Authorizer }) {
    this.#authorizer = options.authorizer;
    this.#env = options.env;
    this.#store = options.store;
    this.#registry = options.registry;
    options.registry.onDefinitionsChange(() => this.#endWithdrawn());
  }

  /** Serves one request, or throws the ApiError that answers it. */
  async serve(call: Call): Promise<ApiResponse> {
    switch (call.info.verb) {
      case 'get':
        return this.#get(call);
      case 'list':
        return answerList({ ...this.#pageRequest(call), representation: call.representation });
      case 'watch':
        return this.#watch(call);
      case 'create':
        return this.#create(call);
      case 'update':
        return this.#update(call);
      case 'patch':
        return this.#patch(call);
      case 'delete':
        return this.#delete(call);
      case 'deletecollection':
        return this.#deleteCollection(call);
      default:
        throw methodNotAllowed();
    }
  }

  #get(call: Call): ApiResponse {
    const { target } = call;
    refuseFuture(this.#store, revisionOf(call.request.query.get('resourceVersion')));
    const stored = this.#registry.stored(target);
    if (!stored) throw notFound(target.definition, target.name);
    if (call.representation.as === 'Object')
      return respond(call.representation, 200, textFor(target.definition, stored));
    return this.#respondObject(call, 200, decodeStored(target.definition, stored), []);
  }

  #watch(call: Call): Promise<ApiResponse> {
    const { target, request, representation } = call;
    return answerWatch({
      env: this.#env,
      store: this.#store,
      definition: target.definition,
      namespace: target.namespace,
      query: request.query,
      representation,
      signal: request.signal,
      ...(target.definition.custom
        ? { onWithdrawn: (end: () => void) => this.#onWithdrawn(target.definition, end) }
        : {}),
    });
  }

  /** Remembers to end a watch when its definition is withdrawn, or replaced by one that shows objects differently. */
  #onWithdrawn(definition: ResourceDefinition, end: () => void): () => void {
    const watches = this.#customWatches.get(definition) ?? new Set();
    this.#customWatches.set(definition, watches);
    watches.add(end);
    return () => {
      watches.delete(end);
      if (watches.size === 0) this.#customWatches.delete(definition);
    };
  }

  #endWithdrawn(): void {
    for (const [definition, watches] of this.#customWatches) {
      const { group, version, plural } = definition;
      const now = this.#registry.definition(group, version, plural);
      if (now && (now === definition || showsTheSame(now, definition))) continue;
      for (const end of watches) end();
    }
  }

  async #create(call: Call): Promise<ApiResponse> {
    const context = writeContext(call);
    const object = await readObject(call, context.warnings);
    return this.#respondWritten(call, 201, await this.#registry.createText(context, call.target, object), context);
  }

  async #update(call: Call): Promise<ApiResponse> {
    const context = writeContext(call);
    const object = await readObject(call, context.warnings);
    // Before anything else is looked at: the wrong name is the client's mistake, whatever is stored.
    alignIdentity(call.target, object);
    const create = (): KubeObject => {
      const { uid, resourceVersion: _, ...metadata } = object.metadata;
      // Whoever names a uid means an object that he has seen.
      if (uid)
        throw conflict(
          call.target.definition,
          call.target.name,
          `Precondition failed: UID in precondition: ${uid}, UID in object meta: `,
        );
      return { ...object, metadata };
    };
    return this.#updateOrCreate(
      call,
      context,
      // A copy each time: a second attempt must not start from what the first has made of it.
      () => clone(object),
      call.target.definition.createsOnUpdate ? create : undefined,
    );
  }

  async #patch(call: Call): Promise<ApiResponse> {
    const { request, target } = call;
    const context = writeContext(call);
    const patch = await readPatch(request, {
      target,
      fieldManager: request.query.get('fieldManager') ?? '',
      force: isTrue(request.query.get('force')),
      nowMs: this.#env.clock.now(),
      level: writeOptionsOf(request).fieldValidation,
      warnings: context.warnings,
    });
    // Applying what is not there creates it.
    return this.#updateOrCreate(call, { ...context, isApply: patch.isApply }, patch.apply, patch.create);
  }

  /** Updates; where there is nothing to update, creates, if that is possible at all and the user may. */
  async #updateOrCreate(
    call: Call,
    context: WriteContext,
    change: (current: KubeObject, isAsWritten: boolean) => KubeObject,
    create: (() => KubeObject) | undefined,
  ): Promise<ApiResponse> {
    const { target, info, user } = call;
    for (let attempt = 1; ; attempt++) {
      try {
        return this.#respondWritten(call, 200, await this.#registry.updateText(context, target, change), context);
      } catch (error) {
        const isMissing = error instanceof ApiError && error.reason === 'NotFound' && !this.#registry.stored(target);
        if (!create || !isMissing || target.subresource !== undefined) throw error;
      }
      const attributes = { ...info, verb: 'create' };
      const { allowed, reason } = this.#authorizer.authorize(user, attributes);
      if (!allowed) throw forbiddenError(user, attributes, reason);
      try {
        const written = await this.#registry.createText(context, target, create());
        return this.#respondWritten(call, 201, written, context);
      } catch (error) {
        // Somebody else was faster: then there is something to update.
        const isThere = error instanceof ApiError && error.reason === 'AlreadyExists';
        if (!isThere || attempt === CREATE_ATTEMPTS_MAX) throw error;
      }
    }
  }

  async #delete(call: Call): Promise<ApiResponse> {
    const { options, dryRun } = await readDeleteOptions(call.request);
    const context = writeContext(call, { dryRun });
    context.warnings.push(...deletionWarnings(call.target.definition, options));
    const { object, gone } = await this.#registry.delete(context, call.target, options);
    if (gone && !RETURNED_WHEN_DELETED.has(bucketOf(call.target.definition)))
      return respond(call.representation, 200, JSON.stringify(deletedStatus(call.target, object)), context.warnings);
    return this.#respondObject(call, 200, object, context.warnings);
  }

  #pageRequest({ target, request }: Call): PageRequest {
    const { definition, namespace } = target;
    return { clock: this.#env.clock, store: this.#store, definition, namespace, query: request.query };
  }

  /** Deletes one object of a collection; undefined where somebody else was faster, which is what was wanted. */
  async #deleteListed(
    context: WriteContext,
    target: Target,
    stored: Stored,
    options: DeleteOptions,
  ): Promise<KubeObject | undefined> {
    const { metadata } = decodeStored(target.definition, stored);
    const each: Target = { ...target, namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
    try {
      return (await this.#registry.delete(context, each, options)).object;
    } catch (error) {
      if (error instanceof ApiError && error.reason === 'NotFound') return undefined;
      throw error;
    }
  }

  async #deleteCollection(call: Call): Promise<ApiResponse> {
    const { target, request } = call;
    const { options, dryRun } = await readDeleteOptions(request);
    const context = writeContext(call, { dryRun });
    context.warnings.push(...deletionWarnings(target.definition, options));
    const page = await readPage(this.#pageRequest(call));
    const items: KubeObject[] = [];
    for (let start = 0; start < page.items.length; start += DELETIONS_AT_ONCE) {
      const portion = page.items.slice(start, start + DELETIONS_AT_ONCE);
      const deletions = portion.map((stored) => this.#deleteListed(context, target, stored, options));
      for (const outcome of await Promise.allSettled(deletions)) {
        if (outcome.status === 'rejected') throw outcome.reason;
        if (outcome.value) items.push(outcome.value);
      }
    }
    const { group, version, listKind } = target.definition;
    const list = {
      kind: listKind,
      apiVersion: apiVersionOf(group, version),
      metadata: page.metadata,
      items,
    };
    return respond(call.representation, 200, JSON.stringify(list), context.warnings);
  }

  #respondWritten(call: Call, status: number, written: Written, context: WriteContext): ApiResponse {
    if (call.representation.as === 'Object')
      return respond(call.representation, status, written.text, context.warnings);
    return this.#respondObject(call, status, written.object, context.warnings);
  }

  #respondObject(call: Call, status: number, object: KubeObject, warnings: readonly string[]): ApiResponse {
    return respondObject(call, call.target.definition, object, { status, warnings, nowMs: this.#env.clock.now() });
  }
}

/** Whether objects look the same by two definitions: one that is on its way out still shows them as it did. */
function showsTheSame(one: ResourceDefinition, other: ResourceDefinition): boolean {
  return deepEqual(one.schema, other.schema) && deepEqual(one.columns, other.columns);
}

function deletedStatus(target: Target, object: KubeObject): Omit<Status, 'code'> {
  const { group, plural } = target.definition;
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: withoutEmpty({ name: target.name, group, kind: plural, uid: object.metadata.uid }),
  };
}
