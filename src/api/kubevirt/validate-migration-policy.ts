import { child, entry, type FieldError, forbidden, invalid, typeInvalid } from '../field-error.ts';
import type { Json } from '../meta.ts';
import { labelValueErrors, qualifiedNameErrors } from '../names.ts';
import { parseQuantity } from '../quantity.ts';
import type { QuantityValue } from '../typed-schema.ts';
import { type FeatureGate, isFeatureGateEnabled } from './feature-gates.ts';
import type { KubeVirtConfiguration } from './kube-virt.ts';
import type { MigrationExperiments } from './migration-experiments.ts';
import {
  isLabelValue,
  type MigrationPolicy,
  type MigrationPolicySpec,
  migrationPolicySpec,
  policySelectors,
  type SelectorLabels,
  selectorMap,
} from './migration-policy.ts';
import { unknownFieldErrors } from './unknown-fields.ts';

/** What the schema cannot say of policies. */

const NOT_NEGATIVE = 'must not be negative';

/** What is wrong with a policy in itself. What is as it was before needs no gate. */
export function migrationPolicyErrors(
  spec: MigrationPolicySpec,
  configuration: KubeVirtConfiguration,
  old?: MigrationPolicySpec,
): FieldError[] {
  const { selectors, experimental = {} } = spec;
  return [
    ...unknownFieldErrors(spec, migrationPolicySpec, 'spec'),
    ...notNegative(spec.bandwidthPerMigration, 'spec.bandwidthPerMigration'),
    ...notNegative(spec.completionTimeoutPerGiB, 'spec.completionTimeoutPerGiB'),
    ...notNegative(spec.progressTimeout, 'spec.progressTimeout'),
    ...gateErrors(spec, old ?? { selectors: {} }, configuration),
    ...experimentErrors(experimental, 'spec.experimental'),
    ...selectorErrors(selectors.namespaceSelector, 'spec.selectors.namespaceSelector'),
    ...selectorErrors(selectors.virtualMachineInstanceSelector, 'spec.selectors.virtualMachineInstanceSelector'),
  ];
}

function notNegative(value: QuantityValue | undefined, path: string): FieldError[] {
  const quantity = parseQuantity(value);
  return quantity && quantity.amount < 0n ? [invalid(path, value, NOT_NEGATIVE)] : [];
}

const EITHER: readonly FeatureGate[] = ['MigrationStallDetection', 'MigrationDowntimeTuning'];

function gateErrors(
  spec: MigrationPolicySpec,
  old: MigrationPolicySpec,
  configuration: KubeVirtConfiguration,
): FieldError[] {
  const check = (option: string, isChanged: boolean, gates: readonly FeatureGate[]): FieldError[] => {
    if (!isChanged || gates.some((gate) => isFeatureGateEnabled(gate, configuration))) return [];
    const detail = `${option} cannot be modified without enabling the ${gates.join(' or ')} feature gate`;
    return [forbidden(`spec.${option}`, detail)];
  };
  const { stallDetector, downtimeTuning } = spec.experimental ?? {};
  return [
    ...check('maxDowntimeMs', spec.maxDowntimeMs !== old.maxDowntimeMs, EITHER),
    ...check('experimental.stallDetector', isChanged(stallDetector, old.experimental?.stallDetector), [
      'MigrationStallDetection',
    ]),
    ...check('experimental.downtimeTuning', isChanged(downtimeTuning, old.experimental?.downtimeTuning), [
      'MigrationDowntimeTuning',
    ]),
  ];
}

/** Whether options are other ones. They are plain values all. */
function isChanged(next: object | undefined, old: object | undefined): boolean {
  const [before, after] = [new Map(Object.entries(old ?? {})), new Map(Object.entries(next ?? {}))];
  return before.size !== after.size || [...after].some(([option, value]) => before.get(option) !== value);
}

function experimentErrors({ stallDetector, downtimeTuning }: MigrationExperiments, path: string): FieldError[] {
  const [stall, tuning] = [child(path, 'stallDetector'), child(path, 'downtimeTuning')];
  return [
    ...(stallDetector && downtimeTuning
      ? [forbidden(tuning, 'stallDetector and downtimeTuning are mutually exclusive')]
      : []),
    ...factorErrors(stallDetector?.ewmaAlpha, child(stall, 'ewmaAlpha'), { above: 0n, max: 1n }),
    ...factorErrors(stallDetector?.patienceWindowDecayFactor, child(stall, 'patienceWindowDecayFactor'), { max: 1n }),
    ...factorErrors(stallDetector?.precopyPossibleFactor, child(stall, 'precopyPossibleFactor'), { min: 1n }),
    ...factorErrors(stallDetector?.completionTimeoutFactor, child(stall, 'completionTimeoutFactor'), { min: 1n }),
    ...notNegative(stallDetector?.stallProgressTimeout, child(stall, 'stallProgressTimeout')),
    ...notNegative(stallDetector?.switchoverTimeout, child(stall, 'switchoverTimeout')),
    ...notNegative(downtimeTuning?.initialMs, child(tuning, 'initialMs')),
    ...notNegative(downtimeTuning?.steps, child(tuning, 'steps')),
    ...notNegative(downtimeTuning?.startAfterIteration, child(tuning, 'startAfterIteration')),
    ...notNegative(downtimeTuning?.cooldownSeconds, child(tuning, 'cooldownSeconds')),
  ];
}

const UNIT = 1_000_000_000n;
const THOUSANDTH = UNIT / 1000n;

interface Range {
  readonly above?: bigint;
  readonly min?: bigint;
  readonly max?: bigint;
}

function factorErrors(value: QuantityValue | undefined, path: string, range: Range): FieldError[] {
  if (value === undefined) return [];
  const quantity = parseQuantity(value);
  // The pattern of the schema lets pass what is too large for anything.
  if (!quantity) return [invalid(path, value, 'must be a number')];
  const { amount } = quantity;
  if (amount < 0n) return [invalid(path, value, NOT_NEGATIVE)];
  if (amount % THOUSANDTH !== 0n) return [invalid(path, value, 'must not have more than 3 decimals')];
  const { above, min = 0n, max } = range;
  if (above !== undefined && amount <= above * UNIT) return [invalid(path, value, `must be greater than ${above}`)];
  if (amount < min * UNIT) return [invalid(path, value, `must be at least ${min}`)];
  if (max !== undefined && amount > max * UNIT) return [invalid(path, value, `must be at most ${max}`)];
  return [];
}

type Selector = MigrationPolicySpec['selectors']['namespaceSelector'];

function selectorErrors(selector: Selector, path: string): FieldError[] {
  if (!selector) return [];
  const labels = selectorMap(selector);
  const isBelow = labels !== selector;
  const others = isBelow ? Object.keys(selector).filter((field) => field !== 'matchLabels') : [];
  const labelsPath = isBelow ? child(path, 'matchLabels') : path;
  return [
    ...others.map((field) => forbidden(child(path, field), 'beside matchLabels there is nothing to select by')),
    ...Object.entries(labels).flatMap(([label, value]) => labelErrors(label, value, labelsPath)),
  ];
}

function labelErrors(label: string, value: Json, path: string): FieldError[] {
  const errors = qualifiedNameErrors(label).map((message) => invalid(path, label, message));
  if (!isLabelValue(value)) return [...errors, typeInvalid(entry(path, label), value, 'must be a text')];
  return [...errors, ...labelValueErrors(String(value)).map((message) => invalid(entry(path, label), value, message))];
}

/** The same for all policies that select by the same labels and values, in whichever form they are written. */
export function selectorSignature(spec: Pick<MigrationPolicySpec, 'selectors'>): string {
  const sorted = (labels: SelectorLabels): [string, string][] => [...labels].sort(([a], [b]) => (a < b ? -1 : 1));
  const { namespace, virtualMachineInstance } = policySelectors(spec);
  return JSON.stringify([sorted(namespace), sorted(virtualMachineInstance)]);
}

/** What is wrong with a policy because of another: no two select by the same, for nobody could say which one holds. */
export function equalPolicyErrors(policy: MigrationPolicy, others: readonly MigrationPolicy[]): FieldError[] {
  const signature = selectorSignature(policy.spec);
  const equal = others.find(
    ({ metadata, spec }) => metadata.name !== policy.metadata.name && selectorSignature(spec) === signature,
  );
  if (!equal) return [];
  const message = `Duplicate value: the policy ${JSON.stringify(equal.metadata.name)} has the same selectors`;
  return [{ type: 'FieldValueDuplicate', field: 'spec.selectors', message }];
}

/** The same policy with the values of its selectors as texts, which is what labels have. The form stays as it is. */
export function withTextLabels(spec: MigrationPolicySpec): MigrationPolicySpec {
  const { namespaceSelector, virtualMachineInstanceSelector } = spec.selectors;
  return {
    ...spec,
    selectors: {
      ...spec.selectors,
      ...(namespaceSelector ? { namespaceSelector: withTexts(namespaceSelector) } : {}),
      ...(virtualMachineInstanceSelector
        ? { virtualMachineInstanceSelector: withTexts(virtualMachineInstanceSelector) }
        : {}),
    },
  };
}

function withTexts(selector: NonNullable<Selector>): NonNullable<Selector> {
  const labels = selectorMap(selector);
  const texts = Object.fromEntries(
    Object.entries(labels).map(([label, value]) => [label, isLabelValue(value) ? String(value) : value]),
  );
  return labels === selector ? texts : { ...selector, matchLabels: texts };
}
