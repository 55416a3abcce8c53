import { describe, expect, it } from 'vitest';
import type { FieldError } from '../field-error.ts';
import type { KubeVirtConfiguration } from './kube-virt.ts';
import { objectsOf, POLICIES } from './manifests.fixture.ts';
import type { MigrationPolicy, MigrationPolicySpec } from './migration-policy.ts';
import { equalPolicyErrors, migrationPolicyErrors, withTextLabels } from './validate-migration-policy.ts';

const gates = (...featureGates: string[]): KubeVirtConfiguration => ({ developerConfiguration: { featureGates } });
const STALL = gates('MigrationStallDetection');
const TUNING = gates('MigrationDowntimeTuning');
const ALL = gates('MigrationStallDetection', 'MigrationDowntimeTuning');

function sentences(errors: readonly FieldError[]): string[] {
  return errors.map(({ field, message }) => `${field}: ${message}`);
}

function errorsOf(spec: object, configuration: KubeVirtConfiguration = ALL, old?: object): string[] {
  const whole = (part: object): MigrationPolicySpec => ({ selectors: {}, ...part });
  return sentences(migrationPolicyErrors(whole(spec), configuration, old && whole(old)));
}

const stall = (fields: object): object => ({ experimental: { stallDetector: fields } });
const tuning = (fields: object): object => ({ experimental: { downtimeTuning: fields } });
const DETECTOR = 'spec.experimental.stallDetector';
const STEPS = 'spec.experimental.downtimeTuning';

describe('numbers of a policy', () => {
  it.each<[what: string, spec: object, error: string]>([
    [
      'negative BandwidthPerMigration',
      { bandwidthPerMigration: '-1Mi' },
      'spec.bandwidthPerMigration: Invalid value: "-1Mi": must not be negative',
    ],
    [
      'negative CompletionTimeoutPerGiB',
      { completionTimeoutPerGiB: -1 },
      'spec.completionTimeoutPerGiB: Invalid value: -1: must not be negative',
    ],
    [
      'negative progressTimeout',
      { progressTimeout: -1 },
      'spec.progressTimeout: Invalid value: -1: must not be negative',
    ],
    ['zero ewmaAlpha', stall({ ewmaAlpha: '0' }), `${DETECTOR}.ewmaAlpha: Invalid value: "0": must be greater than 0`],
    [
      'ewmaAlpha above one',
      stall({ ewmaAlpha: '1.001' }),
      `${DETECTOR}.ewmaAlpha: Invalid value: "1.001": must be at most 1`,
    ],
    [
      'negative ewmaAlpha',
      stall({ ewmaAlpha: '-0.1' }),
      `${DETECTOR}.ewmaAlpha: Invalid value: "-0.1": must not be negative`,
    ],
    [
      'patience above one',
      stall({ patienceWindowDecayFactor: 2 }),
      `${DETECTOR}.patienceWindowDecayFactor: Invalid value: 2: must be at most 1`,
    ],
    [
      'precopyPossibleFactor below one',
      stall({ precopyPossibleFactor: '900m' }),
      `${DETECTOR}.precopyPossibleFactor: Invalid value: "900m": must be at least 1`,
    ],
    [
      'completionTimeoutFactor below one',
      stall({ completionTimeoutFactor: '0.5' }),
      `${DETECTOR}.completionTimeoutFactor: Invalid value: "0.5": must be at least 1`,
    ],
    [
      'four decimals',
      stall({ precopyPossibleFactor: '1.2345' }),
      `${DETECTOR}.precopyPossibleFactor: Invalid value: "1.2345": must not have more than 3 decimals`,
    ],
    [
      'beyond numbers',
      stall({ completionTimeoutFactor: '1e999' }),
      `${DETECTOR}.completionTimeoutFactor: Invalid value: "1e999": must be a number`,
    ],
    [
      'negative stallProgressTimeout',
      stall({ stallProgressTimeout: -1 }),
      `${DETECTOR}.stallProgressTimeout: Invalid value: -1: must not be negative`,
    ],
    [
      'negative switchoverTimeout',
      stall({ switchoverTimeout: -1 }),
      `${DETECTOR}.switchoverTimeout: Invalid value: -1: must not be negative`,
    ],
    ['negative steps', tuning({ steps: -1 }), `${STEPS}.steps: Invalid value: -1: must not be negative`],
  ])('are refused: %s', (_, spec, error) => expect(errorsOf(spec)).toEqual([error]));

  it.each<[what: string, spec: object]>([
    ['greater than zero BandwidthPerMigration', { bandwidthPerMigration: '217Ki' }],
    ['greater than zero CompletionTimeoutPerGiB', { completionTimeoutPerGiB: 23 }],
    ['zero CompletionTimeoutPerGiB', { completionTimeoutPerGiB: 0 }],
    ['zero BandwidthPerMigration', { bandwidthPerMigration: '0' }],
    ['empty spec', {}],
    ['the largest ewmaAlpha', stall({ ewmaAlpha: 1 })],
    ['thousandths', stall({ ewmaAlpha: '1m' })],
    ['no patience', stall({ patienceWindowDecayFactor: '0' })],
    ['the smallest factors', stall({ precopyPossibleFactor: 1, completionTimeoutFactor: '1000m' })],
    ['steps', tuning({ initialMs: 150, steps: 7, startAfterIteration: 3, cooldownSeconds: 10 })],
  ])('are taken: %s', (_, spec) => expect(errorsOf(spec)).toEqual([]));
});

describe('gates of a policy', () => {
  const DOWNTIME =
    'spec.maxDowntimeMs: Forbidden: maxDowntimeMs cannot be modified without enabling the MigrationStallDetection or MigrationDowntimeTuning feature gate';
  const NO_STALL = `${DETECTOR}: Forbidden: experimental.stallDetector cannot be modified without enabling the MigrationStallDetection feature gate`;
  const NO_TUNING = `${STEPS}: Forbidden: experimental.downtimeTuning cannot be modified without enabling the MigrationDowntimeTuning feature gate`;
  const [five, margin, steps] = [{ maxDowntimeMs: 5 }, stall({ stallMargin: 5 }), tuning({ steps: 5 })];
  it.each<[string, object, KubeVirtConfiguration, object | undefined, string[]]>([
    ['a downtime without one', five, {}, undefined, [DOWNTIME]],
    ['a downtime with the one', five, STALL, undefined, []],
    ['a downtime with the other', five, TUNING, undefined, []],
    ['a downtime that stays', five, {}, five, []],
    ['a downtime that goes', {}, {}, five, [DOWNTIME]],
    ['a detector without its own', margin, TUNING, undefined, [NO_STALL]],
    ['a detector with its own', margin, STALL, undefined, []],
    ['a detector that stays', margin, {}, margin, []],
    ['a detector that changes', margin, {}, stall({ stallMargin: 6 }), [NO_STALL]],
    ['steps without their own', steps, STALL, undefined, [NO_TUNING]],
    ['steps with their own', steps, TUNING, undefined, []],
    ['steps that stay', steps, {}, steps, []],
  ])('%s', (_, spec, configuration, old, errors) => expect(errorsOf(spec, configuration, old)).toEqual(errors));
  it('do not let both ways of meeting a slow copy be taken at once', () => {
    expect(errorsOf({ experimental: { stallDetector: {}, downtimeTuning: {} } })).toEqual([
      `${STEPS}: Forbidden: stallDetector and downtimeTuning are mutually exclusive`,
    ]);
  });
});

describe('options and selectors of a policy', () => {
  const select = (namespaceSelector: object): object => ({ selectors: { namespaceSelector } });
  const SELECTOR = 'spec.selectors.namespaceSelector';
  it.each<[what: string, spec: object, errors: unknown[]]>([
    ['an unknown option', { turbo: true }, ['spec.turbo: unknown field']],
    ['an unknown option of an experiment', stall({ turbo: 1 }), [`${DETECTOR}.turbo: unknown field`]],
    ['an unknown experiment', { experimental: { turbo: 1 } }, ['spec.experimental.turbo: unknown field']],
    ['an unknown selector', { selectors: { nodeSelector: {} } }, ['spec.selectors.nodeSelector: unknown field']],
    [
      'both forms',
      select({ matchLabels: { a: 'b' }, c: 'd' }),
      [`${SELECTOR}.c: Forbidden: beside matchLabels there is nothing to select by`],
    ],
    [
      'expressions',
      select({ matchLabels: {}, matchExpressions: [] }),
      [`${SELECTOR}.matchExpressions: Forbidden: beside matchLabels there is nothing to select by`],
    ],
    [
      'expressions alone',
      select({ matchExpressions: [] }),
      [`${SELECTOR}[matchExpressions]: Invalid value: []: must be a text`],
    ],
    [
      'no value',
      select({ matchLabels: { a: null } }),
      [`${SELECTOR}.matchLabels[a]: Invalid value: null: must be a text`],
    ],
    ['a key that no label has', select({ 'a b': '' }), [expect.stringContaining(`${SELECTOR}: Invalid value: "a b"`)]],
    [
      'a value that no label has',
      select({ a: 'b c' }),
      [expect.stringContaining(`${SELECTOR}[a]: Invalid value: "b c"`)],
    ],
    ['any value', select({ a: '' }), []],
    ['what YAML makes of values', select({ a: true, b: 1 }), []],
  ])('%s', (_, spec, errors) => expect(errorsOf(spec)).toEqual(errors));

  it('has values that are texts, in the form in which it was written', () => {
    const [proposed, flat] = objectsOf(POLICIES) as MigrationPolicy[];
    expect(withTextLabels(proposed!.spec).selectors.namespaceSelector).toEqual({
      matchLabels: { 'hpc-workloads': 'true', 'xyz-workloads-type': '' },
    });
    expect(withTextLabels(flat!.spec)).toEqual(flat!.spec);
    expect(errorsOf(proposed!.spec)).toEqual([]);
    expect(errorsOf(flat!.spec)).toEqual([]);
  });
});

describe('two policies', () => {
  const policy = (name: string, selectors: object): MigrationPolicy => ({
    apiVersion: 'migrations.kubevirt.io/v1alpha1',
    kind: 'MigrationPolicy',
    metadata: { name },
    spec: { selectors },
  });
  const vmi = (labels: object): object => ({ virtualMachineInstanceSelector: labels });
  const EQUAL = ['spec.selectors: Duplicate value: the policy "known" has the same selectors'];
  it.each<[string, object, object, string[]]>([
    ['select by the same', vmi({ a: 'b', c: '' }), vmi({ c: '', a: 'b' }), EQUAL],
    ['select by the same in two forms', vmi({ a: 'true' }), vmi({ matchLabels: { a: true } }), EQUAL],
    ['select everything', {}, { namespaceSelector: {} }, EQUAL],
    ['select by another value', vmi({ a: 'b' }), vmi({ a: 'c' }), []],
    ['select by any value', vmi({ a: 'b' }), vmi({ a: '' }), []],
    ['select by the same of something else', vmi({ a: 'b' }), { namespaceSelector: { a: 'b' } }, []],
    ['select by more', vmi({ a: 'b' }), vmi({ a: 'b', c: '' }), []],
  ])('%s', (_, one, other, errors) => {
    expect(sentences(equalPolicyErrors(policy('new', one), [policy('known', other)]))).toEqual(errors);
    expect(equalPolicyErrors(policy('known', one), [policy('known', other)])).toEqual([]);
  });
});
