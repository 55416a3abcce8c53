import type { Json, KubeObject } from '../../../api/meta.ts';
import type { ResourceDefinition } from '../../../api/resource.ts';
import { type ApiError, internalError } from '../../../api/status.ts';
import { clone, setOwn } from '../../../machinery/clone.ts';
import { decodeJson } from '../../../machinery/decode.ts';
import { deepEqual } from '../../../machinery/equal.ts';
import { applyJsonPatch } from '../../../machinery/patch/json-patch.ts';
import type { AdmissionAttributes } from '../../registry/contract.ts';
import { subresourceOf } from '../attributes.ts';
import type { ReinvokingPlugin } from '../chain.ts';
import { CallError, WebhookCaller, type WebhookOptions } from './caller.ts';
import { wantsObject } from './matching.ts';
import { type Invocation, WebhookSource } from './source.ts';
import { convert, hasOwnKind } from './versions.ts';

/** Prunes and defaults an object that a webhook has changed, in place. */
export type AfterMutation = (definition: ResourceDefinition, object: KubeObject) => void;

/**
 * What happened to one request so far. A webhook with reinvocation policy IfNeeded is asked again, once, when the
 * object has changed after it was asked; one that was not asked in the first round is not asked in the second.
 */
interface Progress {
  round: 1 | 2;
  isChanged: boolean;
  /** Asked, and to be asked again if anything changes from here on. */
  readonly asked: Set<string>;
  /** To be asked again. */
  readonly outdated: Set<string>;
  /** The object as the first round left it. */
  output: KubeObject | undefined;
}

/** Lets mutating webhooks change an object, one after the other. */
export class MutatingWebhooks implements ReinvokingPlugin {
  readonly name = 'MutatingAdmissionWebhook';
  readonly #options: WebhookOptions;
  readonly #afterMutation: AfterMutation;
  readonly #source: WebhookSource;
  readonly #caller: WebhookCaller;
  readonly #progress = new WeakMap<AdmissionAttributes, Progress>();

  constructor(options: WebhookOptions & { readonly afterMutation: AfterMutation }) {
    this.#options = options;
    this.#afterMutation = options.afterMutation;
    this.#source = new WebhookSource(options.registry, 'mutatingwebhookconfigurations');
    this.#caller = new WebhookCaller('admit', options);
  }

  handles(attributes: AdmissionAttributes): boolean {
    return this.#source.invocationsFor(attributes).length > 0;
  }

  needsReinvocation(attributes: AdmissionAttributes): boolean {
    return this.#progress.get(attributes)?.isChanged ?? false;
  }

  async mutate(attributes: AdmissionAttributes): Promise<void> {
    const progress = this.#startRound(attributes);
    for (const invocation of this.#source.invocationsFor(attributes)) {
      const { id, webhook } = invocation.compiled;
      if (progress.round === 2 && !progress.outdated.has(id)) continue;
      if (!wantsObject(invocation, attributes, this.#options.registry)) continue;
      if (await this.#callOne(invocation, attributes)) {
        progress.isChanged = true;
        outdateAsked(progress);
      }
      if (webhook.reinvocationPolicy === 'IfNeeded') progress.asked.add(id);
    }
    progress.output = progress.isChanged && progress.round === 1 ? clone(attributes.object) : undefined;
  }

  #startRound(attributes: AdmissionAttributes): Progress {
    const before = this.#progress.get(attributes);
    if (before) {
      before.round = 2;
      // The plug-ins before us have changed it in their second round: everyone who may be asked again is.
      if (!deepEqual(before.output, attributes.object)) outdateAsked(before);
      return before;
    }
    const fresh: Progress = { round: 1, isChanged: false, asked: new Set(), outdated: new Set(), output: undefined };
    this.#progress.set(attributes, fresh);
    return fresh;
  }

  /** Asks one webhook and applies its patch. Answers whether that changed anything. */
  async #callOne(invocation: Invocation, attributes: AdmissionAttributes): Promise<boolean> {
    const { definition } = attributes.target;
    const { object, oldObject } = attributes;
    const shown = object && convert(object, definition, invocation.definition);
    const objects = { object: shown, oldObject: oldObject && convert(oldObject, definition, invocation.definition) };
    const patched = await this.#caller.call(invocation, attributes, objects, ({ patch }) =>
      patch === undefined ? undefined : this.#patched(invocation, attributes, shown, patch),
    );
    if (!patched || !object) return false;
    const result = convert(patched, invocation.definition, definition);
    if (deepEqual(result, object)) return false;
    replaceContents(object, result);
    return true;
  }

  #patched(
    { compiled, definition }: Invocation,
    attributes: AdmissionAttributes,
    shown: KubeObject | undefined,
    bytes: Uint8Array,
  ): KubeObject | undefined {
    const { name } = compiled.webhook;
    const patch = decodePatch(name, bytes);
    if (patch === null || (Array.isArray(patch) && patch.length === 0)) return undefined;
    if (!shown) {
      throw internalError(
        `admission webhook ${JSON.stringify(name)} attempted to modify the object, which is not supported for this operation`,
      );
    }
    const patched = applyPatch(shown, patch);
    if (!hasOwnKind(definition, subresourceOf(attributes))) this.#afterMutation(definition, patched);
    return patched;
  }
}

function outdateAsked(progress: Progress): void {
  for (const id of progress.asked) progress.outdated.add(id);
  progress.asked.clear();
}

function decodePatch(name: string, bytes: Uint8Array): Json {
  try {
    return decodeJson(bytes).value;
  } catch (error) {
    throw new CallError(name, `received undecodable patch in webhook response: ${(error as Error).message}`, error);
  }
}

/** A patch that does not apply, or leaves no object of the same kind, is the webhook's fault, not the client's: 500. */
function applyPatch(object: KubeObject, patch: Json): KubeObject {
  let patched: Json;
  try {
    patched = applyJsonPatch(object as unknown as Json, patch);
  } catch (error) {
    throw internalError(describe(error), error);
  }
  if (!isSameKind(patched, object)) throw internalError('a webhook may not change the kind of an object');
  return patched as unknown as KubeObject;
}

/** What went wrong: patches keep that from clients, but it was not the client who sent this one. */
function describe(error: unknown): string {
  const { message, cause } = error as ApiError;
  return cause instanceof Error ? cause.message : message;
}

function isSameKind(patched: Json, { apiVersion, kind }: KubeObject): boolean {
  if (typeof patched !== 'object' || patched === null || Array.isArray(patched)) return false;
  const { metadata } = patched;
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return false;
  return patched['apiVersion'] === apiVersion && patched['kind'] === kind;
}

/** Everyone holds on to the object itself, so its contents change, not the reference. */
function replaceContents(object: KubeObject, contents: KubeObject): void {
  for (const key of Object.keys(object)) delete object[key];
  for (const key of Object.keys(contents)) setOwn(object, key, contents[key]);
}
