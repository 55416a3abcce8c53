import { type FeatureGate, isFeatureGateEnabled } from '../../api/kubevirt/feature-gates.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { MigrationConfiguration } from '../../api/kubevirt/migration-configuration.ts';
import type { MigrationExperiments } from '../../api/kubevirt/migration-experiments.ts';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';

/**
 * How one guest is moved: what its policy says, else what the configuration of the cluster says, else the defaults; and
 * for each option who said it.
 */

/** The options of one migration. `network` and `portRange` may be left open, and `experimental` holds what is in use. */
export type MigrationOptions = Required<Pick<MigrationConfiguration, DefaultedOption>> &
  Pick<MigrationConfiguration, 'network' | 'portRange'> & { readonly experimental: MigrationExperiments };

/** Where an option comes from. `Following` is said of an option that nobody set, and that goes as another one does. */
export type Origin =
  | { readonly from: 'Policy'; readonly policy: string }
  | { readonly from: 'Configuration' }
  | { readonly from: 'Default' }
  | {
      readonly from: 'Following';
      readonly option: 'allowPostCopy';
      readonly set: Exclude<Origin, { from: 'Following' }>;
    };

/** An option that was set, and has no effect. */
export interface IgnoredOption {
  readonly option: string;
  readonly origin: Origin;
  readonly reason: 'FeatureGateDisabled';
  readonly message: string;
}

/** The options of a migration. Origins are by option, nested ones with dots: `experimental.stallDetector.stallMargin`. */
export interface ResolvedOptions {
  readonly options: MigrationOptions;
  readonly origins: ReadonlyMap<string, Origin>;
  readonly ignored: readonly IgnoredOption[];
}

type Configuration = Pick<KubeVirtConfiguration, 'migrations' | 'developerConfiguration'>;

const DEFAULTS = {
  allowAutoConverge: false,
  bandwidthPerMigration: '0',
  completionTimeoutPerGiB: 150,
  progressTimeout: 150,
  maxDowntimeMs: 900,
  utilityVolumesTimeout: 150,
  allowPostCopy: false,
  allowWorkloadDisruption: false,
  unsafeMigrationOverride: false,
  disableTLS: false,
  matchSELinuxLevelOnMigration: true,
} as const satisfies Partial<MigrationConfiguration>;

type DefaultedOption = keyof typeof DEFAULTS;

/** What a policy may say. The rest is a matter of the whole cluster, or of nodes. */
const POLICY_OPTIONS = [
  'allowAutoConverge',
  'bandwidthPerMigration',
  'completionTimeoutPerGiB',
  'progressTimeout',
  'maxDowntimeMs',
  'allowPostCopy',
  'disableTLS',
] as const satisfies readonly (keyof MigrationPolicy['spec'] & DefaultedOption)[];

const CONFIGURATION_OPTIONS = [
  'utilityVolumesTimeout',
  'unsafeMigrationOverride',
  'matchSELinuxLevelOnMigration',
] as const satisfies readonly DefaultedOption[];

const STALL_DETECTOR_DEFAULTS = {
  stallMargin: 4,
  ewmaAlpha: '0.4',
  stallProgressTimeout: 40,
  switchoverTimeout: 60,
  precopyPossibleFactor: '1.5',
  patienceWindowDecayFactor: '0.5',
  searchLocalMinima: true,
  completionTimeoutFactor: '2',
} as const satisfies MigrationExperiments['stallDetector'];

const DOWNTIME_TUNING_DEFAULTS = {
  initialMs: 150,
  steps: 7,
  startAfterIteration: 3,
  cooldownSeconds: 10,
} as const satisfies MigrationExperiments['downtimeTuning'];

/** The options that hold for a guest under this policy, or under none. */
export function resolveOptions(
  policy: MigrationPolicy | undefined,
  configuration: Configuration = {},
): ResolvedOptions {
  const merge = new Merge(policy, configuration);
  const options: MigrationOptions = {
    ...merge.each(POLICY_OPTIONS),
    ...merge.each(CONFIGURATION_OPTIONS),
    allowWorkloadDisruption: merge.disruption(),
    ...merge.open(),
    experimental: merge.experiments(),
  };
  return { options, origins: merge.origins, ignored: merge.ignored };
}

/** Gates of experiments. Whether they were open was asked when the options were frozen. */
const EXPERIMENT_GATES = ['MigrationStallDetection', 'MigrationDowntimeTuning'] as const satisfies FeatureGate[];

/**
 * Options that were frozen into a status, whole again: what came later, of policies, configuration and gates, does not
 * count, and what an older writer left out is as by default.
 */
export function frozenOptions(frozen: MigrationConfiguration): MigrationOptions {
  const developerConfiguration = { featureGates: [...EXPERIMENT_GATES] };
  return resolveOptions(undefined, { migrations: frozen, developerConfiguration }).options;
}

type Layer = { readonly origin: Origin; readonly values: object };

/** One merge; it notes where each option came from on the way. */
class Merge {
  readonly origins = new Map<string, Origin>();
  readonly ignored: IgnoredOption[] = [];
  readonly #configuration: Configuration;
  readonly #layers: readonly Layer[];

  constructor(policy: MigrationPolicy | undefined, configuration: Configuration) {
    this.#configuration = configuration;
    this.#layers = [
      ...(policy
        ? [{ origin: { from: 'Policy', policy: policy.metadata.name ?? '' } as const, values: policy.spec }]
        : []),
      { origin: { from: 'Configuration' }, values: configuration.migrations ?? {} },
    ];
  }

  /** The values of some options that have defaults. Only a policy's own options are taken from it. */
  each<const Options extends readonly DefaultedOption[]>(
    options: Options,
  ): Required<Pick<MigrationConfiguration, Options[number]>> {
    const layers = [
      ...this.#layers.filter(({ origin }) => origin.from !== 'Policy' || isPolicyOption(options[0])),
      { origin: { from: 'Default' } as const, values: DEFAULTS },
    ];
    const entries = options.map((option) => [option, this.#pick(option, layers, option)] as const);
    return Object.fromEntries(entries) as Required<Pick<MigrationConfiguration, Options[number]>>;
  }

  /** Options of the configuration that may be left open. */
  open(): Pick<MigrationConfiguration, 'network' | 'portRange'> {
    const { network, portRange } = this.#configuration.migrations ?? {};
    if (!isUnset(network)) this.origins.set('network', { from: 'Configuration' });
    if (!isUnset(portRange)) this.origins.set('portRange', { from: 'Configuration' });
    return { ...(!isUnset(network) && { network }), ...(!isUnset(portRange) && { portRange }) };
  }

  /**
   * Whether the guest may be disturbed. Who allows or forbids post-copy and says no more speaks of this too; so a policy
   * that says the one is heard before a configuration that says the other.
   */
  disruption(): boolean {
    for (const { origin, values } of this.#layers) {
      const said = values as Pick<MigrationConfiguration, 'allowWorkloadDisruption' | 'allowPostCopy'>;
      if (!isUnset(said.allowWorkloadDisruption)) {
        this.origins.set('allowWorkloadDisruption', origin);
        return said.allowWorkloadDisruption;
      }
      if (!isUnset(said.allowPostCopy)) return this.#follow(origin, said.allowPostCopy);
    }
    return this.#follow({ from: 'Default' }, DEFAULTS.allowPostCopy);
  }

  #follow(origin: Origin, value: boolean): boolean {
    if (origin.from === 'Following') return value;
    this.origins.set('allowWorkloadDisruption', { from: 'Following', option: 'allowPostCopy', set: origin });
    return value;
  }

  experiments(): MigrationExperiments {
    const stallDetector = this.#experiment('stallDetector', STALL_DETECTOR_DEFAULTS, 'MigrationStallDetection');
    const downtimeTuning = this.#experiment('downtimeTuning', DOWNTIME_TUNING_DEFAULTS, 'MigrationDowntimeTuning');
    const compression = this.#pick('compression', this.#experimentLayers(), 'experimental.compression');
    return {
      ...(stallDetector && { stallDetector }),
      ...(downtimeTuning && { downtimeTuning }),
      ...(!isUnset(compression) && { compression: compression as MigrationExperiments['compression'] }),
    };
  }

  /** An experiment that somebody asks for, whole; nothing where nobody does, or where its gate is closed. */
  #experiment<Defaults extends object>(
    name: 'stallDetector' | 'downtimeTuning',
    defaults: Defaults,
    gate: (typeof EXPERIMENT_GATES)[number],
  ): Defaults | undefined {
    const path = `experimental.${name}`;
    const layers = this.#experimentLayers().flatMap(({ origin, values }): Layer[] => {
      const said = (values as MigrationExperiments)[name];
      return isUnset(said) ? [] : [{ origin, values: said }];
    });
    const first = layers[0];
    if (!first) return undefined;
    if (!isFeatureGateEnabled(gate, this.#configuration)) {
      const message = `${path} has no effect while the feature gate ${gate} is off`;
      this.ignored.push({ option: path, origin: first.origin, reason: 'FeatureGateDisabled', message });
      return undefined;
    }
    const all = [...layers, { origin: { from: 'Default' } as const, values: defaults }];
    const entries = Object.keys(defaults).map(
      (option) => [option, this.#pick(option, all, `${path}.${option}`)] as const,
    );
    return Object.fromEntries(entries) as Defaults;
  }

  #experimentLayers(): Layer[] {
    return this.#layers.flatMap(({ origin, values }) => {
      const { experimental } = values as Pick<MigrationConfiguration, 'experimental'>;
      return isUnset(experimental) ? [] : [{ origin, values: experimental }];
    });
  }

  /** The first value that a layer has, noted under the path. */
  #pick(option: string, layers: readonly Layer[], path: string): unknown {
    for (const { origin, values } of layers) {
      const value: unknown = Object.hasOwn(values, option) ? (values as Record<string, unknown>)[option] : undefined;
      if (isUnset(value)) continue;
      this.origins.set(path, origin);
      return value;
    }
    return undefined;
  }
}

function isPolicyOption(option: DefaultedOption | undefined): boolean {
  return POLICY_OPTIONS.some((known) => known === option);
}

/** Go clients write null for what they leave open. */
function isUnset(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}
