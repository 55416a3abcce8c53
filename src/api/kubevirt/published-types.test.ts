import type {
  V1beta1VirtualMachineInstancetypeSpec,
  V1beta1VirtualMachinePreferenceSpec,
  V1KubeVirtConfiguration,
  V1KubeVirtStatus,
  V1VirtualMachine,
  V1VirtualMachineInstance,
  V1VirtualMachineInstanceMigration,
  V1alpha1MigrationPolicy,
} from '@kubevirt-ui-ext/kubevirt-api/kubevirt';
import { describe, expectTypeOf, it } from 'vitest';
import type { JsonObject } from '../meta.ts';
import type { QuantityValue } from '../typed-schema.ts';
import type { InstancetypeSpec } from './instancetype.ts';
import type { KubeVirtConfiguration, KubeVirtStatus } from './kube-virt.ts';
import type { MigrationPolicy } from './migration-policy.ts';
import type { PreferenceSpec } from './preference.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from './virtual-machine-instance-migration.ts';

/**
 * Our objects, held against the types that KubeVirt's own user interface is written with: whatever we write, its users
 * can read. The proof is in the types, the compiler runs it; see what each exception below is for.
 */

/**
 * What differs on purpose:
 * - Quantities are texts or numbers to us, since YAML has both; the published types know only texts.
 * - What we keep without looking into it is any object to us; so is what we pass on to the launcher pod.
 * Where we have a list of texts and they have any text (run strategies, phases …), ours are stricter, and assignable.
 */
type Published<T> = QuantityValue extends T
  ? string
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends readonly (infer Item)[]
      ? Published<Item>[]
      : T extends JsonObject
        ? IfOpaque<T>
        : { [K in keyof T]: Published<T[K]> };

/** Objects that we do not look into; maps of one kind of values are not among them. */
type IfOpaque<T> = string extends keyof T
  ? JsonObject[string] extends T[keyof T]
    ? never
    : { [K in keyof T]: Published<T[K]> }
  : { [K in keyof T]: Published<T[K]> };

type Present<T> = NonNullable<T>;

/** The paths of fields that `Other` has and `Own` has not; what is a map, or opaque, is not looked into. */
type Missing<Own, Other, Path extends string = ''> = Own extends string | number | boolean
  ? never
  : Own extends readonly (infer OwnItem)[]
    ? Other extends readonly (infer OtherItem)[]
      ? Missing<OwnItem, OtherItem, `${Path}[]`>
      : never
    : string extends keyof Own | keyof Other
      ? never
      : { [K in keyof Other & string]-?: MissingAt<Own, Other, K, `${Path}.${K}`> }[keyof Other & string];
type MissingAt<Own, Other, K extends keyof Other, Path extends string> = K extends keyof Own
  ? object extends Present<Own[K]>
    ? MissingInMarker<Present<Own[K]>, Present<Other[K]>, Path>
    : Missing<Present<Own[K]>, Present<Other[K]>, Path>
  : Path;
/** The published types call an object without fields just that. */
type MissingInMarker<Own, Other, Path extends string> = keyof Own extends never ? never : Missing<Own, Other, Path>;

type Spec<T extends { spec: unknown }> = Published<T['spec']>;
type Status<T extends { status?: unknown }> = Published<NonNullable<T['status']>>;

/** What a migration's state has that the published types have not. */
type OwnState =
  | `.migrationState.${'progress' | 'channel' | 'decisions' | 'downtimeMs' | 'targetRunner' | 'migratedVolumes' | 'sourceLetter' | 'targetLetter'}`
  | `.migrationState.${'sourceState' | 'targetState'}.${'agentKeys' | 'runner' | 'slots' | 'verdict' | 'volumes'}`
  | `.migrationState.sourceState.${'epoch' | 'identity' | 'memoryBytes' | 'vcpus' | 'machineType' | 'cpuTopology' | 'memory' | 'hasEnded'}`
  | `.migrationState.migrationConfiguration.${
      | 'parallelInboundMigrationsPerNode'
      | 'priorityAgeingSeconds'
      | 'finishedMigrationsKept'
      | 'disruptionHoldSeconds'
      | 'criticalPreemptionHoldSeconds'
      | 'syncTimeoutSeconds'
      | 'maxDowntimeMs'
      | 'portRange'
      | 'experimental'}`;

describe('types', () => {
  it('machines are those of KubeVirt', () => {
    expectTypeOf<Spec<VirtualMachine>>().toExtend<V1VirtualMachine['spec']>();
    expectTypeOf<Status<VirtualMachine>>().toExtend<NonNullable<V1VirtualMachine['status']>>();
  });
  it('guests are those of KubeVirt', () => {
    expectTypeOf<Spec<VirtualMachineInstance>>().toExtend<V1VirtualMachineInstance['spec']>();
    type PublishedStatus = NonNullable<V1VirtualMachineInstance['status']>;
    expectTypeOf<Status<VirtualMachineInstance>>().toExtend<PublishedStatus>();
  });
  it('migrations are those of KubeVirt, once a webhook has filled in both names of fields that have two', () => {
    type Halves = Pick<V1VirtualMachineInstanceMigration['spec'], 'sendTo' | 'receive'>;
    type Filled = Omit<Spec<VirtualMachineInstanceMigration>, keyof Halves> & Halves;
    expectTypeOf<Filled>().toExtend<V1VirtualMachineInstanceMigration['spec']>();
    type PublishedStatus = NonNullable<V1VirtualMachineInstanceMigration['status']>;
    expectTypeOf<Status<VirtualMachineInstanceMigration>>().toExtend<PublishedStatus>();
  });
  it('policies are those of KubeVirt, whose selectors have one form only', () => {
    expectTypeOf<Spec<MigrationPolicy>>().toExtend<V1alpha1MigrationPolicy['spec']>();
  });
  it('instance types and preferences are those of KubeVirt', () => {
    expectTypeOf<Published<InstancetypeSpec>>().toExtend<V1beta1VirtualMachineInstancetypeSpec>();
    expectTypeOf<Published<PreferenceSpec>>().toExtend<V1beta1VirtualMachinePreferenceSpec>();
  });
  it('the configuration is that of KubeVirt', () => {
    expectTypeOf<Published<KubeVirtConfiguration>>().toExtend<V1KubeVirtConfiguration>();
    expectTypeOf<Published<KubeVirtStatus>>().toExtend<V1KubeVirtStatus>();
  });
  it('no field is missing, so that no manifest loses one', () => {
    type OfGuest = Missing<VirtualMachineInstance['spec'], V1VirtualMachineInstance['spec']>;
    // The generator of the published types renames what is a word of JavaScript.
    expectTypeOf<OfGuest>().toEqualTypeOf<'.networks[].multus._default'>();
    type OfMachine = Missing<Omit<VirtualMachine['spec'], 'template'>, Omit<V1VirtualMachine['spec'], 'template'>>;
    expectTypeOf<OfMachine>().toEqualTypeOf<never>();
    expectTypeOf<Missing<InstancetypeSpec, V1beta1VirtualMachineInstancetypeSpec>>().toEqualTypeOf<never>();
    expectTypeOf<Missing<PreferenceSpec, V1beta1VirtualMachinePreferenceSpec>>().toEqualTypeOf<never>();
    type OfGuestStatus = Missing<
      Present<VirtualMachineInstance['status']>,
      Present<V1VirtualMachineInstance['status']>
    >;
    expectTypeOf<OfGuestStatus>().toEqualTypeOf<'.vSOCKCID'>();
    type OfMachineStatus = Missing<Present<VirtualMachine['status']>, Present<V1VirtualMachine['status']>>;
    expectTypeOf<OfMachineStatus>().toEqualTypeOf<never>();
    type OfMigration = Missing<VirtualMachineInstanceMigration['spec'], V1VirtualMachineInstanceMigration['spec']>;
    expectTypeOf<OfMigration>().toEqualTypeOf<never>();
    type OfMigrationStatus = Missing<
      Present<VirtualMachineInstanceMigration['status']>,
      Present<V1VirtualMachineInstanceMigration['status']>
    >;
    expectTypeOf<OfMigrationStatus>().toEqualTypeOf<never>();
    expectTypeOf<Missing<MigrationPolicy['spec'], V1alpha1MigrationPolicy['spec']>>().toEqualTypeOf<never>();
  });
  it('no field is ours alone, but for the right to run and what is newer than the published types', () => {
    type OfGuest = Missing<V1VirtualMachineInstance['spec'], VirtualMachineInstance['spec']>;
    expectTypeOf<OfGuest>().toEqualTypeOf<'.networks[].multus.default'>();
    expectTypeOf<Missing<V1beta1VirtualMachineInstancetypeSpec, InstancetypeSpec>>().toEqualTypeOf<never>();
    expectTypeOf<Missing<V1beta1VirtualMachinePreferenceSpec, PreferenceSpec>>().toEqualTypeOf<never>();
    type OfGuestStatus = Missing<
      Present<V1VirtualMachineInstance['status']>,
      Present<VirtualMachineInstance['status']>
    >;
    // Times of conditions are left out by the generator of the published types.
    expectTypeOf<OfGuestStatus>().toEqualTypeOf<
      | '.rightToRun'
      | '.evacuationCauses'
      | '.VSOCKCID'
      | '.conditions[].lastProbeTime'
      | '.conditions[].lastTransitionTime'
      | '.interfaces[].forwardedPorts'
      | '.sourceMigrationState'
      | '.targetMigrationState'
      | OwnState
    >();
    type OfMigration = Missing<V1VirtualMachineInstanceMigration['spec'], VirtualMachineInstanceMigration['spec']>;
    expectTypeOf<OfMigration>().toEqualTypeOf<'.vmName' | '.cause' | '.sendTo.key' | '.receive.key'>();
    type OfMigrationStatus = Missing<
      Present<V1VirtualMachineInstanceMigration['status']>,
      Present<VirtualMachineInstanceMigration['status']>
    >;
    expectTypeOf<OfMigrationStatus>().toEqualTypeOf<
      | '.effectivePriority'
      | '.causes'
      | '.progress'
      | '.syncEndpoint'
      | '.conditions[].lastProbeTime'
      | '.conditions[].lastTransitionTime'
      | OwnState
    >();
    type OfPolicy = Missing<V1alpha1MigrationPolicy['spec'], MigrationPolicy['spec']>;
    expectTypeOf<OfPolicy>().toEqualTypeOf<'.progressTimeout' | '.maxDowntimeMs' | '.disableTLS' | '.experimental'>();
    type OfMachineStatus = Missing<Present<V1VirtualMachine['status']>, Present<VirtualMachine['status']>>;
    expectTypeOf<OfMachineStatus>().toEqualTypeOf<
      '.rightToRun' | '.conditions[].lastProbeTime' | '.conditions[].lastTransitionTime'
    >();
  });
});
