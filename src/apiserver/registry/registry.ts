import { formatTime, type KubeObject, type ManagedFieldsEntry } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { alreadyExists, entityTooLarge, noFreeName, notFound, staleObject } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import { trackUpdate } from '../../machinery/apply/managed-fields.ts';
import { clone } from '../../machinery/clone.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { compileSchema } from '../../machinery/schema/compile.ts';
import { shareUnchanged } from '../../machinery/share-unchanged.ts';
import type { AdmissionChain } from '../admission/chain.ts';
import { BODY_BYTES_MAX } from '../http/limits.ts';
import { StorageError } from '../storage/port.ts';
import { RevisionMismatch, type Store, type Stored } from '../storage/store.ts';
import type { Catalog } from './catalog.ts';
import { decodeStored, encodeStored, keyOf, reshape, textFor } from './codec.ts';
import type { AdmissionAttributes, DeleteOptions, Registry, Target, View, WriteContext } from './contract.ts';
import { checkDeletePreconditions, decideDeletion, isReadyToGo } from './deletion.ts';
import {
  alignIdentity,
  checkPreconditions,
  generateName,
  prepareCreate,
  prepareUpdate,
  resetFieldsOf,
} from './preparation.ts';
import { isAsWritten, readStored, RecentObjects } from './recent-objects.ts';
import { creationErrors, refuseInvalid, updateErrors } from './validation.ts';
import { BucketView } from './view.ts';

/** How often a write is tried again when another came between; more means that something spins. */
const WRITE_ATTEMPTS_MAX = 32;
/** How many generated names are tried before the client is told that they are all taken. */
const NAME_ATTEMPTS_MAX = 8;

/** Characters of an object's text: as many as a body may have bytes, however many patches have made it what it is. */
const OBJECT_LENGTH_MAX = BODY_BYTES_MAX;

type Change = (current: KubeObject) => KubeObject | Promise<KubeObject>;

/**
 * What becomes of an object. Nothing of it may be changed. Where it is as it was written, it has passed all that is asked of
 * objects of its kind, and the new one may share parts with it.
 */
type SharingChange = (current: KubeObject, isAsWritten: boolean) => KubeObject | Promise<KubeObject>;

/**
 * A write's outcome: the object, which is shared and must not be changed, and its text as this definition shows it (so
 * that answers need no second encoding).
 */
export interface Written {
  readonly object: KubeObject;
  readonly text: string;
}

/**
 * The one way to write an object: defaults, admission, managed fields, validation, storage, in that order.
 * Everything is recomputed on the newest state when another write comes between (optimistic concurrency).
 */
export class ResourceRegistry implements Registry {
  readonly #env: Env;
  readonly #store: Store;
  readonly #catalog: Catalog;
  readonly #admission: AdmissionChain;
  readonly #views = new Map<string, BucketView>();
  readonly #recent = new RecentObjects();

  constructor(options: {
    env: Env;
    store: Store;
    catalog: Catalog;
    admission: (registry: Registry) => AdmissionChain;
  }) {
    this.#env = options.env;
    this.#store = options.store;
    this.#catalog = options.catalog;
    this.#admission = options.admission(this);
  }

  definition(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#catalog.find(group, version, plural);
  }

  definitions(): readonly ResourceDefinition[] {
    return this.#catalog.all();
  }

  onDefinitionsChange(listener: () => void): void {
    this.#catalog.onChange(listener);
  }

  view<T extends KubeObject = KubeObject>(bucket: string): View<T> {
    let view = this.#views.get(bucket);
    if (!view) this.#views.set(bucket, (view = new BucketView(this.#store, bucket)));
    return view as unknown as View<T>;
  }

  read(target: Target): KubeObject | undefined {
    const stored = this.stored(target);
    return stored && decodeStored(target.definition, stored);
  }

  pending(bucket: string, namespace: string, name: string): KubeObject | undefined {
    const key = namespace === '' ? name : `${namespace}/${name}`;
    const latest = this.#store.latest(bucket, key);
    if (!latest || latest.revision === this.#store.get(bucket, key)?.revision) return undefined;
    return JSON.parse(latest.text) as KubeObject;
  }

  /** The newest durable state as stored. */
  stored(target: Target): Stored | undefined {
    return this.#store.get(bucketOf(target.definition), keyOf(target.definition, target.namespace, target.name));
  }

  async create(context: WriteContext, target: Target, object: KubeObject): Promise<KubeObject> {
    return clone((await this.createText(context, target, object)).object);
  }

  async update(context: WriteContext, target: Target, change: Change): Promise<KubeObject> {
    return clone((await this.updateText(context, target, (current) => change(clone(current)))).object);
  }

  /** As `create`, with the text for the answer. */
  async createText(context: WriteContext, target: Target, submitted: KubeObject): Promise<Written> {
    const prefix = submitted.metadata?.name ? '' : (submitted.metadata?.generateName ?? '');
    for (let attempt = 1; ; attempt++) {
      const object = clone(submitted);
      object.metadata ??= {};
      if (prefix !== '') object.metadata.name = generateName(prefix, this.#env.random);
      try {
        return await this.#createOnce(context, target, object);
      } catch (error) {
        if (!(error instanceof RevisionMismatch)) throw error;
        const name = object.metadata.name ?? '';
        // A name that is only taken by a write that fails is free again.
        if (!(await this.#settled({ ...target, name }))) continue;
        if (prefix === '') throw alreadyExists(target.definition, name);
        if (attempt === NAME_ATTEMPTS_MAX) throw noFreeName(target.definition, name);
      }
    }
  }

  async #createOnce(context: WriteContext, target: Target, object: KubeObject): Promise<Written> {
    const { definition } = target;
    const nowMs = this.#env.clock.now();
    alignIdentity(target, object);
    this.#applyDefaults(definition, object);
    const named: Target = { ...target, name: object.metadata.name ?? '' };
    const attributes: AdmissionAttributes = {
      operation: 'CREATE',
      target: named,
      object,
      oldObject: undefined,
      options: optionsOf('CreateOptions', context),
      context,
    };
    // Whoever asks owns what it asks for; nobody owns what admission and the server make of it.
    if (!context.isApply) this.#track(context, target, undefined, object);
    const { managedFields } = object.metadata;
    if (!context.isAdmitted) await this.#admission.mutate(attributes);
    // What the server decides comes after admission, which cannot overrule it and may be what it depends on.
    prepareCreate(definition, object, nowMs, this.#env.random);
    setManagedFields(object, managedFields);
    refuseInvalid(definition, object, () => creationErrors(definition, object));
    warn(context, definition.strategy?.warnings?.(object, undefined));
    if (!context.isAdmitted) {
      await this.#admission.validate(attributes);
      this.#admission.confirm(attributes);
    }
    const bucket = bucketOf(definition);
    const key = keyOf(definition, object.metadata.namespace ?? '', object.metadata.name ?? '');
    if (context.dryRun) {
      const latest = this.#store.latest(bucket, key);
      if (latest) throw new RevisionMismatch(key, 0, latest);
      return { object, text: JSON.stringify(object) };
    }
    const encode = withinLimit(this.#encoder(definition, object));
    const onStaged = (stored: Stored): void => this.#recent.keep(definition, stored, object);
    const stored = await this.#store.put({ bucket, key, expected: 0, encode, onStaged });
    return this.#written(definition, object, stored);
  }

  /** As `update`, with the text for the answer. */
  async updateText(context: WriteContext, target: Target, change: SharingChange): Promise<Written> {
    for (let attempt = 1; ; attempt++) {
      const latest = this.#latest(target);
      try {
        if (!latest) throw notFound(target.definition, target.name);
        return await this.#updateOnce(context, target, latest, change);
      } catch (error) {
        await this.#unlessToRetry(target, error, attempt);
      }
    }
  }

  async #updateOnce(context: WriteContext, target: Target, latest: Stored, change: SharingChange): Promise<Written> {
    const { definition, subresource } = target;
    // Built-in kinds have defaults of their own, which are filled in wherever they like.
    const isSound = definition.custom === true && isAsWritten(definition, latest);
    const current = readStored(definition, latest);
    // Its kind may have changed while it was written: what is made of it now is taken for sound later. One of another version
    // than it is kept in has just been shaped, and is never taken for that.
    if (definition.custom && !definition.storage && !isSound) reshape(definition, current);
    // From reading to staging nobody is waited for who is not there: what comes between makes it all begin again.
    const changed = change(current, isSound);
    const updated = changed instanceof Promise ? await changed : changed;
    if (updated.metadata === current.metadata) updated.metadata = { ...current.metadata };
    alignIdentity(target, updated);
    checkPreconditions(target, updated, current);
    this.#applyDefaults(definition, updated, isSound ? current : undefined);
    const attributes: AdmissionAttributes = {
      operation: 'UPDATE',
      target,
      object: updated,
      oldObject: current,
      options: optionsOf('UpdateOptions', context),
      context,
    };
    // Through a narrow door comes only what fits, and only that can be owned.
    if (subresource !== undefined && subresource !== 'status') prepareUpdate(target, updated, current);
    if (!context.isApply && !context.isUntracked) this.#track(context, target, current, updated);
    const { managedFields } = updated.metadata;
    const mutating = context.isAdmitted ? undefined : this.#admission.mutate(attributes);
    if (mutating) await mutating;
    prepareUpdate(target, updated, current);
    setManagedFields(updated, managedFields);
    // Most of it is as it was, and nobody changes it from here on; but for the resourceVersion, which is its own.
    shareUnchanged(updated, current);
    updated.metadata = { ...updated.metadata };
    refuseInvalid(definition, updated, () => updateErrors(target, updated, current));
    warn(context, definition.strategy?.warnings?.(updated, current));
    const validating = context.isAdmitted ? undefined : this.#admission.validate(attributes);
    if (validating) await validating;
    return this.#storeUpdate(context, target, latest, current, updated);
  }

  async #storeUpdate(
    context: WriteContext,
    target: Target,
    latest: Stored,
    current: KubeObject,
    updated: KubeObject,
  ): Promise<Written> {
    const { definition } = target;
    const isGone = isReadyToGo(definition, updated);
    // A write that changes nothing costs nothing: no revision, no event, no disk.
    if (!isGone && deepEqual(updated, current)) {
      await this.#mustSettle(target, latest);
      return { object: current, text: textFor(definition, latest) };
    }
    if (context.dryRun) {
      await this.#mustSettle(target, latest);
      return { object: updated, text: JSON.stringify(updated) };
    }
    const write = {
      bucket: bucketOf(definition),
      key: latest.key,
      expected: latest.revision,
      // What is on its way out may be as large as it is.
      encode: isGone ? this.#encoder(definition, updated) : withinLimit(this.#encoder(definition, updated)),
    };
    const onStaged = (stored: Stored): void => this.#recent.keep(definition, stored, updated);
    const stored = isGone ? await this.#store.delete(write) : await this.#store.put({ ...write, onStaged });
    return this.#written(definition, updated, stored);
  }

  async delete(
    context: WriteContext,
    target: Target,
    options: DeleteOptions,
  ): Promise<{ object: KubeObject; gone: boolean }> {
    for (let attempt = 1; ; attempt++) {
      const latest = this.#latest(target);
      try {
        if (!latest) throw notFound(target.definition, target.name);
        return await this.#deleteOnce(context, target, latest, options);
      } catch (error) {
        await this.#unlessToRetry(target, error, attempt);
      }
    }
  }

  async #deleteOnce(
    context: WriteContext,
    target: Target,
    latest: Stored,
    options: DeleteOptions,
  ): Promise<{ object: KubeObject; gone: boolean }> {
    const { definition } = target;
    const current = decodeStored(definition, latest);
    checkDeletePreconditions(target, current, options);
    const attributes: AdmissionAttributes = {
      operation: 'DELETE',
      target,
      object: undefined,
      oldObject: current,
      options: { ...optionsOf('DeleteOptions', context), ...options },
      context,
    };
    if (!context.isAdmitted) {
      await this.#admission.mutate(attributes);
      await this.#admission.validate(attributes);
    }
    const decision = decideDeletion(definition, current, options, this.#env.clock.now());
    const gone = decision.kind === 'removed';
    const object = decision.kind === 'marked' ? decision.object : current;
    if (decision.kind === 'unchanged' || context.dryRun) {
      await this.#mustSettle(target, latest);
      return { object, gone };
    }
    const write = {
      bucket: bucketOf(definition),
      key: latest.key,
      expected: latest.revision,
      encode: this.#encoder(definition, object),
    };
    const stored = gone ? await this.#store.delete(write) : await this.#store.put(write);
    return { object: this.#written(definition, object, stored).object, gone };
  }

  /** Admission of a request that stores nothing under its own name: an Eviction, a Binding, a token. */
  async admit(attributes: AdmissionAttributes): Promise<void> {
    await this.#admission.mutate(attributes);
    await this.#admission.validate(attributes);
  }

  /** Prunes and defaults again what a webhook has changed. */
  reshape(definition: ResourceDefinition, object: KubeObject): void {
    compileSchema(definition.schema, { builtin: !definition.custom }).prune(object as never);
    this.#applyDefaults(definition, object);
  }

  #latest(target: Target): Stored | undefined {
    return this.#store.latest(bucketOf(target.definition), keyOf(target.definition, target.namespace, target.name));
  }

  /** Whether the newest state of an object is durable, once that is known. */
  #settled(target: Target): Promise<boolean> {
    return this.#store.settled(bucketOf(target.definition), keyOf(target.definition, target.namespace, target.name));
  }

  /** For an answer that writes nothing but tells of the state: nobody may learn of a state that a crash takes back. */
  async #mustSettle(target: Target, latest: Stored): Promise<void> {
    if (!(await this.#settled(target))) throw new RevisionMismatch(latest.key, latest.revision, undefined);
  }

  /** Returns where a write is to be tried again: another came between, or it was refused because of one that failed. */
  async #unlessToRetry(target: Target, error: unknown, attempt: number): Promise<void> {
    if (error instanceof RevisionMismatch) {
      if (attempt === WRITE_ATTEMPTS_MAX) throw staleObject(target.definition, target.name);
      return;
    }
    if (error instanceof StorageError || (await this.#settled(target)) || attempt === WRITE_ATTEMPTS_MAX) throw error;
  }

  #applyDefaults(definition: ResourceDefinition, object: KubeObject, known?: KubeObject): void {
    compileSchema(definition.schema, { builtin: !definition.custom }).applyDefaults(object as never, known as never);
    definition.strategy?.applyDefaults?.(object);
  }

  /** Records who owns what has changed between `before` and `object`. */
  #track(context: WriteContext, target: Target, before: KubeObject | undefined, object: KubeObject): void {
    const managedFields = trackUpdate({
      live: before,
      updated: object,
      schema: target.definition.schema,
      manager: context.fieldManager,
      apiVersion: object.apiVersion,
      subresource: target.subresource ?? '',
      time: formatTime(this.#env.clock.now()),
      resetFields: resetFieldsOf(target),
    });
    setManagedFields(object, managedFields);
  }

  #encoder(definition: ResourceDefinition, object: KubeObject): (revision: number) => string {
    const storage = this.#catalog.ofBucket(bucketOf(definition)) ?? definition;
    return (revision) => encodeStored(storage, definition, object, revision);
  }

  #written(definition: ResourceDefinition, object: KubeObject, stored: Stored): Written {
    const resourceVersion = String(stored.revision);
    // One that is kept knows it already, and is shared by now.
    if (object.metadata.resourceVersion !== resourceVersion) object.metadata.resourceVersion = resourceVersion;
    return { object, text: textFor(definition, stored) };
  }
}

function setManagedFields(object: KubeObject, managedFields: ManagedFieldsEntry[] | undefined): void {
  if (managedFields !== undefined && managedFields.length > 0) object.metadata.managedFields = managedFields;
  else delete object.metadata.managedFields;
}

/** Warnings that one write gives: more do not fit into an answer's headers. */
const WARNINGS_MAX = 100;

function warn(context: WriteContext, warnings: readonly string[] = []): void {
  for (const warning of warnings.slice(0, WARNINGS_MAX)) context.warnings.push(warning);
}

/** Refuses to store what no client could send back. */
function withinLimit(encode: (revision: number) => string): (revision: number) => string {
  return (revision) => {
    const text = encode(revision);
    if (text.length > OBJECT_LENGTH_MAX) throw entityTooLarge(OBJECT_LENGTH_MAX);
    return text;
  };
}

function optionsOf(kind: string, context: WriteContext): KubeObject {
  const options: Record<string, unknown> = { apiVersion: 'meta.k8s.io/v1', kind };
  if (context.dryRun) options['dryRun'] = ['All'];
  if (kind !== 'DeleteOptions' && context.fieldManager !== '') options['fieldManager'] = context.fieldManager;
  return options as KubeObject;
}
