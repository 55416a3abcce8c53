import type { Json, KubeObject } from '../meta.ts';
import { flag, type Infer, kept, long, needed, object, openObject, quantity } from '../typed-schema.ts';
import type { CustomKind } from './custom-kind.ts';
import { migrationExperiments } from './migration-experiments.ts';

/** How the guests that a policy selects are moved. What it leaves open, the configuration of the cluster fills in. */

const FORMS = 'labels and their values, or the same below matchLabels; an empty value is any';

/** Open, so that a webhook can name what is no option, instead of the API server dropping it in silence. */
export const migrationPolicySpec = openObject('Which guests it is for, and how they are moved.', {
  selectors: needed(
    openObject('Which guests it is for: all labels must be there.', {
      namespaceSelector: kept(`Labels of the namespace: ${FORMS}.`),
      virtualMachineInstanceSelector: kept(`Labels of the guest: ${FORMS}.`),
    }),
  ),
  allowAutoConverge: flag('Whether a guest that writes too fast is slowed down.'),
  allowPostCopy: flag('Whether the guest may go on at its target before all of its memory is there.'),
  allowWorkloadDisruption: flag('Whether a guest that does not converge may be paused; follows allowPostCopy.'),
  bandwidthPerMigration: quantity('Bytes per second of one migration at most; 0 for no limit.'),
  completionTimeoutPerGiB: long('Seconds that each GiB may take before something is done about it.'),
  progressTimeout: long('Seconds without progress after which a migration is given up.'),
  maxDowntimeMs: long('Milliseconds that the guest may stand still.', { minimum: 1, maximum: 2_000_000 }),
  disableTLS: flag(
    'Whether the copy is sent unencrypted, within the cluster; both sides still prove who they are, and there is no post-copy.',
  ),
  experimental: migrationExperiments,
});

const status = object('Nothing is said of policies.', {});

/** The kind MigrationPolicy. */
export const migrationPolicy: CustomKind = {
  group: 'migrations.kubevirt.io',
  version: 'v1alpha1',
  kind: 'MigrationPolicy',
  plural: 'migrationpolicies',
  scope: 'Cluster',
  shortNames: [],
  categories: ['all'],
  description: 'How the guests that it selects are moved.',
  fields: { spec: needed(migrationPolicySpec), status },
  hasStatus: true,
  columns: [],
};

export type MigrationPolicySpec = Infer<typeof migrationPolicySpec>;

export interface MigrationPolicy extends KubeObject {
  spec: MigrationPolicySpec;
}

/** Labels and the values that they must have; an empty one is any. */
export type SelectorLabels = ReadonlyMap<string, string>;

export interface PolicySelectors {
  readonly namespace: SelectorLabels;
  readonly virtualMachineInstance: SelectorLabels;
}

/** The selectors of a policy, in whichever form they were written. */
export function policySelectors({ selectors }: Pick<MigrationPolicySpec, 'selectors'>): PolicySelectors {
  return {
    namespace: selectorLabels(selectors.namespaceSelector),
    virtualMachineInstance: selectorLabels(selectors.virtualMachineInstanceSelector),
  };
}

type Selector = MigrationPolicySpec['selectors']['namespaceSelector'];

function selectorLabels(selector: Selector): SelectorLabels {
  const labels = selectorMap(selector);
  return new Map(
    Object.entries(labels).flatMap(([label, value]) => (isLabelValue(value) ? [[label, String(value)] as const] : [])),
  );
}

/** The map of labels in a selector: below matchLabels where that is a map itself and no label of this name. */
export function selectorMap(selector: Selector): { readonly [label: string]: Json } {
  if (!selector) return {};
  const { matchLabels } = selector;
  return isMap(matchLabels) ? matchLabels : selector;
}

function isMap(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** YAML makes booleans and numbers of `true` and `1`: their text is what was meant. */
export function isLabelValue(value: Json): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
