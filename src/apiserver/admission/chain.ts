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
 * `validate`; the first plug-in to throw ends the request. Both answer a promise only where a plug-in has to wait:
 * a write that waits for nobody is done in one go, so that none can come between.
 */
export class AdmissionChain {
  readonly #mutating: readonly AdmissionPlugin[];
  readonly #validating: readonly AdmissionPlugin[];
  readonly #confirming: readonly AdmissionPlugin[];

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#mutating = plugins.filter((plugin) => plugin.mutate !== undefined);
    this.#validating = plugins.filter((plugin) => plugin.validate !== undefined);
    this.#confirming = plugins.filter((plugin) => plugin.confirm !== undefined);
  }

  /** Lets every plug-in change the object; runs them a second time, never a third, when a webhook has changed it. */
  mutate(attributes: AdmissionAttributes): Promise<void> | void {
    // A webhook takes its time, so where nobody has, none has changed anything.
    return run(this.#mutating, 'mutate', attributes)?.then(() => {
      if (this.#mutating.some((plugin) => needsReinvocation(plugin, attributes)))
        return run(this.#mutating, 'mutate', attributes);
      return undefined;
    });
  }

  /** Lets every plug-in refuse the object as it will be stored. */
  validate(attributes: AdmissionAttributes): Promise<void> | void {
    return run(this.#validating, 'validate', attributes);
  }

  /** Lets every plug-in refuse a creation at the last moment. */
  confirm(attributes: AdmissionAttributes): void {
    for (const plugin of this.#confirming) if (plugin.handles(attributes)) plugin.confirm?.(attributes);
  }
}

/** Asks one plug-in after the other, from `first` on. */
function run(
  plugins: readonly AdmissionPlugin[],
  step: 'mutate' | 'validate',
  attributes: AdmissionAttributes,
  first = 0,
): Promise<void> | undefined {
  for (let index = first; index < plugins.length; index++) {
    const plugin = plugins[index] as AdmissionPlugin;
    if (!plugin.handles(attributes)) continue;
    const waiting = plugin[step]?.(attributes);
    if (waiting) return waiting.then(() => run(plugins, step, attributes, index + 1));
  }
  return undefined;
}
