import { choice, flag, type Infer, integer, long, openObject, quantity } from '../typed-schema.ts';

/**
 * How a copy that does not converge is met, for those who want to tune it. Kept as it was written, so that a webhook can
 * name what is no option; factors are quantities, since CRDs know no fractions that every client reads alike.
 */

const stallDetector = openObject('Notices that a copy gets no smaller, and acts where it is smallest.', {
  stallMargin: integer('Percent that a pass may be above the smallest one and still count as such; 4 by default.', {
    minimum: 0,
    maximum: 100,
  }),
  ewmaAlpha: quantity('How much the newest pass weighs in averages, above 0 up to 1; 0.4 by default.'),
  stallProgressTimeout: long('Seconds without a smaller pass after which the copy stalls; 40 by default.'),
  switchoverTimeout: long('Seconds that the end of the copy may be waited for; 60 by default.'),
  precopyPossibleFactor: quantity(
    'How many times the downtime the rest may take for a pre-copy to be worth waiting for; 1.5 by default.',
  ),
  patienceWindowDecayFactor: quantity('By what the time to wait shrinks each time; 0.5 by default.'),
  searchLocalMinima: flag('Whether the end is put where the least is left; true by default.'),
  completionTimeoutFactor: quantity('How many times its deadline a post-copy may take; 2 by default.'),
});

const downtimeTuning = openObject('Allows the guest to stand still for longer, step by step.', {
  initialMs: long('Milliseconds of the first step; 150 by default.'),
  steps: integer('How many steps there are up to maxDowntimeMs; 7 by default.'),
  startAfterIteration: integer('The pass after which the steps begin; 3 by default.'),
  cooldownSeconds: integer('Seconds between two steps; 10 by default.'),
});

/** Options of policies that KubeVirt calls experimental. */
export const migrationExperiments = openObject('Ways to meet a copy that does not converge.', {
  stallDetector,
  downtimeTuning,
  compression: choice('How the copy is packed.', ['none', 'zstd']),
});

export type MigrationExperiments = Infer<typeof migrationExperiments>;
