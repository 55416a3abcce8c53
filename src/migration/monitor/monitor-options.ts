import { parseQuantity, quantityToNumber } from '../../api/quantity.ts';
import type { QuantityValue } from '../../api/typed-schema.ts';
import type { MigrationOptions } from '../policies/options.ts';

/** Notices that passes get no smaller, and acts where they are smallest. */
export interface StallOptions {
  /** What part of the smallest pass another may be above it, and still count as such. */
  readonly margin: number;
  readonly progressTimeoutMs: number;
  readonly patienceDecayFactor: number;
  readonly searchesMinima: boolean;
}

/** Allows the guest to stand still for longer, step by step. */
export interface DowntimeSteps {
  readonly initialMs: number;
  readonly steps: number;
  readonly startAfterPass: number;
  readonly cooldownMs: number;
}

/** All that the monitor goes by. Times are since the copy began. */
export interface MonitorOptions {
  /** Of memory and of the disks that are copied. */
  readonly sizeBytes: number;
  /** When something is done about a copy that is not over; infinite where it may take as long as it likes. */
  readonly completionDeadlineMs: number;
  /** When even what was done about it must be over. */
  readonly finalDeadlineMs: number;
  /** When the guest will be gone from the source for another reason; infinite where there is none. May change. */
  readonly outerDeadlineMs: number;
  readonly progressTimeoutMs: number;
  readonly downtimeMsMax: number;
  readonly allowsAutoConverge: boolean;
  readonly allowsPostCopy: boolean;
  readonly allowsDisruption: boolean;
  readonly stall: StallOptions | undefined;
  readonly downtimeSteps: DowntimeSteps | undefined;
  readonly switchoverTimeoutMs: number;
  /** How many times the longest downtime the rest may take for the end to be waited for. */
  readonly preCopyPossibleFactor: number;
  /** What the newest second weighs in averages. */
  readonly averageWeight: number;
  /** A link over which nothing comes for so long is dead, though nobody says so. */
  readonly silenceTimeoutMs: number;
  /** How long the two sides may take until memory is copied. */
  readonly setupTimeoutMs: number;
}

/** What the policy does not know of a guest. */
export interface CopyFacts {
  /** Its memory, and the disks that are copied. */
  readonly sizeBytes: number;
  /** Whether both hosts and all of its devices let it. */
  readonly isPostCopyPossible: boolean;
  readonly outerDeadlineMs?: number;
}

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const SECOND = 1000;
/** A copy whose time is over may take this many times as long in all, once something was done about it. */
const COMPLETION_FACTOR = 2;
const PRE_COPY_POSSIBLE_FACTOR = 1.5;
const SWITCHOVER_TIMEOUT_SECONDS = 60;
const AVERAGE_WEIGHT = 0.4;
/** Longer than what TCP recovers from by itself within a few seconds, and than the search for dirty pages of big guests. */
const SILENCE_TIMEOUT_MS = 30_000;
/** However impatient somebody is: what TCP sends again within a few seconds is not lost. */
const SILENCE_TIMEOUT_MS_MIN = 5000;
const SETUP_TIMEOUT_MS = 60_000;
/** QEMU before 9.0 without KVM looks through memory first, at about 1 ms for each MiB. */
const SETUP_MS_PER_MIB = 2;

/** What a migration's options come to for a guest of this size. */
export function monitorOptions(options: MigrationOptions, facts: CopyFacts): MonitorOptions {
  const { stallDetector, downtimeTuning } = options.experimental;
  // Less than a GiB counts as one: connecting and stopping take their time for small guests, too.
  const gibibytes = Math.max(1, facts.sizeBytes / GIB);
  const completionDeadlineMs = orForever(options.completionTimeoutPerGiB * gibibytes * SECOND);
  return {
    sizeBytes: facts.sizeBytes,
    completionDeadlineMs,
    finalDeadlineMs:
      completionDeadlineMs * Math.max(1, factor(stallDetector?.completionTimeoutFactor, COMPLETION_FACTOR)),
    outerDeadlineMs: facts.outerDeadlineMs ?? Number.POSITIVE_INFINITY,
    progressTimeoutMs: orForever(options.progressTimeout * SECOND),
    downtimeMsMax: options.maxDowntimeMs,
    allowsAutoConverge: options.allowAutoConverge,
    allowsPostCopy: options.allowPostCopy && facts.isPostCopyPossible,
    allowsDisruption: options.allowWorkloadDisruption,
    stall: stallDetector && {
      margin: (stallDetector.stallMargin ?? 4) / 100,
      progressTimeoutMs: (stallDetector.stallProgressTimeout ?? 40) * SECOND,
      patienceDecayFactor: Math.min(1, factor(stallDetector.patienceWindowDecayFactor, 0.5)),
      searchesMinima: stallDetector.searchLocalMinima ?? true,
    },
    downtimeSteps: downtimeTuning && {
      initialMs: downtimeTuning.initialMs ?? 150,
      steps: downtimeTuning.steps ?? 7,
      startAfterPass: downtimeTuning.startAfterIteration ?? 3,
      cooldownMs: (downtimeTuning.cooldownSeconds ?? 10) * SECOND,
    },
    switchoverTimeoutMs: (stallDetector?.switchoverTimeout ?? SWITCHOVER_TIMEOUT_SECONDS) * SECOND,
    preCopyPossibleFactor: factor(stallDetector?.precopyPossibleFactor, PRE_COPY_POSSIBLE_FACTOR),
    averageWeight: Math.min(1, factor(stallDetector?.ewmaAlpha, AVERAGE_WEIGHT)),
    silenceTimeoutMs: silenceTimeoutMs(orForever(options.progressTimeout * SECOND)),
    setupTimeoutMs: SETUP_TIMEOUT_MS + (facts.sizeBytes / MIB) * SETUP_MS_PER_MIB,
  };
}

/** Where nothing comes over nothing comes any closer: who gives up for that sooner does so here, too. */
function silenceTimeoutMs(progressTimeoutMs: number): number {
  return Math.max(SILENCE_TIMEOUT_MS_MIN, Math.min(SILENCE_TIMEOUT_MS, progressTimeoutMs));
}

/** 0 is how options say "no limit". */
function orForever(milliseconds: number): number {
  return milliseconds > 0 ? milliseconds : Number.POSITIVE_INFINITY;
}

function factor(value: QuantityValue | undefined, otherwise: number): number {
  const parsed = parseQuantity(value);
  return parsed ? quantityToNumber(parsed) : otherwise;
}
