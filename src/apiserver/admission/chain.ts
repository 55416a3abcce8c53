import type { AdmissionAttributes, AdmissionPlugin } from '../registry/contract.ts';

/** A plug-in whose changes may call for a second round of all mutating plug-ins. */
export interface ReinvokingPlugin extends AdmissionPlugin {
  /** Asked once, after the first round; the second round runs with the same attributes. */
  needsReinvocation(attributes: AdmissionAttributes): boolean;
}

function needsReinvocation(plugin: AdmissionPlugin, attributes: AdmissionAttributes): boolean {
  return 'needsReinvocation' in plugin && (plugin as ReinvokingPlugin).needsReinvocation(attributes);
}

/**
 * The admission plug-ins in the caller's order. The registry calls `mutate`, then validates the schema, then calls
 * `validate`; the first plug-in to throw ends the request.
 */
export class AdmissionChain {
  readonly #mutating: readonly AdmissionPlugin[];
  readonly #validating: readonly AdmissionPlugin[];

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#mutating = plugins.filter((plugin) => plugin.mutate !== undefined);
    this.#validating = plugins.filter((plugin) => plugin.validate !== undefined);
  }

  /** Lets every plug-in change the object; runs them a second time, never a third, when a webhook has changed it. */
  async mutate(attributes: AdmissionAttributes): Promise<void> {
    await this.#mutateOnce(attributes);
    if (this.#mutating.some((plugin) => needsReinvocation(plugin, attributes))) await this.#mutateOnce(attributes);
  }

  /** Lets every plug-in refuse the object as it will be stored. */
  async validate(attributes: AdmissionAttributes): Promise<void> {
    for (const plugin of this.#validating) {
      if (plugin.handles(attributes)) await plugin.validate?.(attributes);
    }
  }

  async #mutateOnce(attributes: AdmissionAttributes): Promise<void> {
    for (const plugin of this.#mutating) {
      if (plugin.handles(attributes)) await plugin.mutate?.(attributes);
    }
  }
}
