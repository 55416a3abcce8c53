import type { ResourceDefinition } from '../../../api/resource.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../../registry/contract.ts';
import { type ReviewedObjects, WebhookCaller, type WebhookOptions } from './caller.ts';
import { wantsObject } from './matching.ts';
import { WebhookSource } from './source.ts';
import { convert } from './versions.ts';

/** Asks validating webhooks, all at once; the first refusal in their order is the answer. */
export class ValidatingWebhooks implements AdmissionPlugin {
  readonly name = 'ValidatingAdmissionWebhook';
  readonly #options: WebhookOptions;
  readonly #source: WebhookSource;
  readonly #caller: WebhookCaller;

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.#source = new WebhookSource(options.registry, 'validatingwebhookconfigurations');
    this.#caller = new WebhookCaller('validating', options);
  }

  handles(attributes: AdmissionAttributes): boolean {
    return this.#source.invocationsFor(attributes).length > 0;
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    const wanted = this.#source
      .invocationsFor(attributes)
      .filter((invocation) => wantsObject(invocation, attributes, this.#options.registry));
    const versions = new Map<ResourceDefinition, ReviewedObjects>();
    const outcomes = await Promise.allSettled(
      wanted.map((invocation) => {
        const objects = objectsFor(attributes, invocation.definition, versions);
        return this.#caller.call(invocation, attributes, objects, () => undefined);
      }),
    );
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }
}

function objectsFor(
  { target, object, oldObject }: AdmissionAttributes,
  version: ResourceDefinition,
  known: Map<ResourceDefinition, ReviewedObjects>,
): ReviewedObjects {
  let objects = known.get(version);
  if (!objects) {
    objects = {
      object: object && convert(object, target.definition, version),
      oldObject: oldObject && convert(oldObject, target.definition, version),
    };
    known.set(version, objects);
  }
  return objects;
}
