import type { MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { isStarted, type MigrationFacts, ownState } from './facts.ts';

/**
 * What a half must know to be in a phase, from the one in which it looks for the other on: the same as docs/decentralized.md
 * has in words. Each phase rests on all that the ones before it rest on, but for what only its side has. Whoever changes what
 * is decided finds here what others rely on.
 */

/** Something that has to be known, in words, and whether it is. */
export interface RequiredFact {
  readonly what: string;
  readonly isKnown: (facts: MigrationFacts) => boolean;
}

type Table = Readonly<Partial<Record<MigrationPhase, readonly RequiredFact[]>>>;

const fact = (what: string, isKnown: RequiredFact['isKnown']): RequiredFact => ({ what, isKnown });

const targetFound = fact("the target's migration and guest", (facts) => {
  const { migrationUID, virtualMachineInstanceUID } = ownState(facts)?.targetState ?? {};
  return migrationUID !== undefined && virtualMachineInstanceUID !== undefined;
});
const sourceFound = fact("the source's migration and guest", (facts) => {
  const { migrationUID, virtualMachineInstanceUID } = ownState(facts)?.sourceState ?? {};
  return migrationUID !== undefined && virtualMachineInstanceUID !== undefined;
});
const runnerTold = fact('who executes the guest, and in which epoch', (facts) => {
  const { runner, epoch } = ownState(facts)?.sourceState ?? {};
  return runner !== undefined && epoch !== undefined;
});
const targetPlaced = fact("the target's node and pod", (facts) => {
  const { targetNode, targetPod } = ownState(facts) ?? {};
  return Boolean(targetNode) && Boolean(targetPod);
});
const sourcePlaced = fact("the source's node and pod", (facts) => {
  const { sourceNode, sourcePod } = ownState(facts) ?? {};
  return Boolean(sourceNode) && Boolean(sourcePod);
});
const optionsFrozen = fact(
  'the options of the target',
  (facts) => ownState(facts)?.migrationConfiguration !== undefined,
);
const targetWaits = fact("where the target's agent waits, and who it is", (facts) => {
  const { targetNodeAddress, targetRunner } = ownState(facts) ?? {};
  return Boolean(targetNodeAddress) && targetRunner !== undefined;
});
const begun = fact('that the source has begun', ({ guest }) => guest !== undefined && isStarted(guest));
const disksKnown = fact('the disks that come', (facts) => ownState(facts)?.sourceState?.volumes !== undefined);

const handedOffAtSource = [targetFound, runnerTold, targetPlaced, sourcePlaced, optionsFrozen];
const handedOffAtTarget = [sourceFound, runnerTold, disksKnown, targetPlaced, optionsFrozen];

/** By role and phase. What is not named rests on nothing but the objects. */
export const REQUIRED_FACTS: Readonly<Record<'source' | 'target', Table>> = {
  source: {
    Pending: [targetFound, runnerTold],
    Scheduling: [targetFound, runnerTold],
    Scheduled: [targetFound, runnerTold, targetPlaced],
    PreparingTarget: handedOffAtSource,
    TargetReady: [...handedOffAtSource, targetWaits],
    Running: [...handedOffAtSource, targetWaits, begun],
    Succeeded: [fact('that the guest is held by another object', ({ guest }) => isAway(guest?.status?.rightToRun))],
  },
  target: {
    Pending: [sourceFound],
    Scheduling: [sourceFound, runnerTold, disksKnown],
    Scheduled: [sourceFound, runnerTold, disksKnown],
    PreparingTarget: handedOffAtTarget,
    TargetReady: [...handedOffAtTarget, targetWaits],
    Running: [...handedOffAtTarget, targetWaits, begun],
    Succeeded: [
      fact('that the pod that waited has begun a record', (facts) => {
        const { targetRunner, sourceState } = ownState(facts) ?? {};
        const { epoch = 0 } = facts.guest?.status?.rightToRun ?? {};
        return targetRunner !== undefined && epoch > (sourceState?.epoch ?? Number.POSITIVE_INFINITY);
      }),
    ],
  },
};
