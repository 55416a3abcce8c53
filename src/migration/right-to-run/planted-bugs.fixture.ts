import { decide, isHeard } from './decide.ts';
import type { StartsOn } from './model-images.fixture.ts';
import { ATTEMPT, type Protocol, type World } from './model-world.fixture.ts';
import { change, machine, type Plan, plan, type Step } from './plan.ts';
import { begin, withoutSuccessor, withSuccessor } from './record.ts';
import { seize } from './seize.ts';
import type { View } from './view.ts';

/** Single rules of the protocol, broken on purpose: the checker is only worth something if it finds each of them. */

/** The protocol as it is. */
export const PROTOCOL: Protocol = {
  decide,
  isHeard,
  seize: (record, outOfService, answer) =>
    seize(
      record,
      outOfService.map((uid) => ({ uid, isOutOfService: true })),
      answer,
    ),
};

export interface PlantedBug {
  readonly name: string;
  readonly mode: World['mode'];
  readonly faultsMax: number;
  readonly faults: readonly string[];
  /** Where it is about the images of a volume that goes to another claim. */
  readonly startsOn?: StartsOn;
  readonly protocol: Protocol;
  /** What the checker has to say about it. */
  readonly finding: RegExp;
}

const deciding = (wrong: (view: View) => Plan | undefined): Protocol => ({
  ...PROTOCOL,
  decide: (view) => wrong(view) ?? decide(view),
});
const isReserved = (view: View): boolean => view.standing.kind === 'holding' && view.standing.reserved !== undefined;
const without = (all: Plan, isLeftOut: (step: Plan['steps'][number]) => boolean): Plan =>
  plan(...all.steps.filter((step) => !isLeftOut(step)));

/** The one thing that must never be. */
export const TWICE = /executed twice/;

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'grants before the source says completed',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['link'],
    protocol: deciding((view) =>
      isReserved(view) && view.machine === 'paused' ? decide({ ...view, machine: 'postmigrate' }) : undefined,
    ),
    finding: TWICE,
  },
  {
    name: 'grants post-copy when it is only announced',
    mode: 'post-copy',
    faultsMax: 1,
    faults: ['link'],
    protocol: deciding((view) =>
      isReserved(view) && view.machine === 'running' && !view.hasMigrationFailed && view.peerMachine === 'inmigrate'
        ? decide({ ...view, machine: 'postcopy', peerMachine: 'postcopy' })
        : undefined,
    ),
    finding: /comes to rest, but/,
  },
  {
    name: 'takes without a grant',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['link'],
    protocol: deciding((view) =>
      view.standing.kind === 'receiving' && view.machine === 'paused'
        ? decide({ ...view, inbox: [{ kind: 'grant', attempt: ATTEMPT }] })
        : undefined,
    ),
    finding: TWICE,
  },
  {
    name: 'takes what it has refused',
    mode: 'pre-copy',
    faultsMax: 2,
    faults: ['death', 'crash'],
    protocol: deciding((view) =>
      view.standing.kind === 'refused' && view.inbox.some((message) => message.kind === 'grant')
        ? decide({ ...view, standing: { kind: 'receiving', attempt: ATTEMPT }, machine: 'paused' })
        : undefined,
    ),
    finding: /after "refused"/,
  },
  {
    name: 'refuses, and leaves its machine to be continued',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['cancel'],
    protocol: deciding((view) => {
      const all = decide(view);
      const isRefusal = all.steps.some((step) => step.kind === 'send' && step.message.kind === 'refused');
      return view.machine === 'paused' && isRefusal
        ? plan(machine('continue'), ...without(all, (step) => step.kind === 'machine').steps)
        : undefined;
    }),
    finding: TWICE,
  },
  {
    name: 'lets a guest run at its target that its owner holds',
    mode: 'paused',
    faultsMax: 0,
    faults: [],
    protocol: deciding((view) =>
      view.standing.kind === 'receiving'
        ? decide({ ...view, inbox: view.inbox.map((message) => ({ ...message, isPaused: false })) })
        : undefined,
    ),
    finding: /a guest that its owner holds is continued on b/,
  },
  {
    name: 'resumes the source after the grant',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['cancel'],
    protocol: deciding((view) =>
      view.standing.kind === 'granted' && view.wish.isCancelled === true && view.machine === 'postmigrate'
        ? plan(machine('continue'))
        : undefined,
    ),
    finding: TWICE,
  },
  {
    name: 'aborts while the copy goes on',
    mode: 'post-copy',
    faultsMax: 1,
    faults: ['cancel'],
    protocol: deciding((view) =>
      without(decide(view), (step) => step.kind === 'machine' && step.command === 'cancel-migration'),
    ),
    finding: /in post-copy is continued/,
  },
  {
    name: 'ends the source while the target still needs it',
    mode: 'post-copy',
    faultsMax: 0,
    faults: [],
    protocol: deciding((view) =>
      view.machine === 'postcopy' && view.inbox.some((message) => message.kind === 'taken')
        ? plan(machine('kill'))
        : undefined,
    ),
    finding: /ends the only machine/,
  },
  {
    name: 'seizes while a successor is set',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['node'],
    protocol: {
      ...PROTOCOL,
      seize: (record, outOfService) => PROTOCOL.seize(withoutSuccessor(record), outOfService),
    },
    finding: TWICE,
  },
  {
    name: 'seizes from a node that only seems to be gone',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['node'],
    protocol: {
      ...PROTOCOL,
      seize: (record) => plan({ kind: 'record', from: record, to: begin(record, record.epoch + 1, undefined) }),
    },
    finding: TWICE,
  },
  {
    name: 'starts its machine before it has claimed the epoch',
    mode: 'start',
    faultsMax: 0,
    faults: [],
    protocol: deciding((view) => {
      const all = decide(view).steps;
      const claim = all.find((step) => step.kind === 'record');
      const isStart = all.some((step) => step.kind === 'machine' && step.command === 'start');
      return claim !== undefined && isStart ? plan(...all.filter((step) => step !== claim), claim) : undefined;
    }),
    finding: TWICE,
  },
  {
    name: 'starts its machine on the word of an old read',
    mode: 'start',
    faultsMax: 1,
    faults: ['node'],
    protocol: deciding((view) => {
      const { standing, record } = view;
      if (standing.kind !== 'starting' || record?.holder?.podUID !== view.self.podUID) return undefined;
      const isStale = (step: Plan['steps'][number]): boolean =>
        step.kind === 'record' || (step.kind === 'journal' && step.entry.kind === 'starting');
      const launch = without(decide(view), isStale).steps;
      return plan(
        ...launch.map((step) =>
          step.kind === 'journal' ? { ...step, entry: { kind: 'started' as const, epoch: standing.epoch } } : step,
        ),
      );
    }),
    finding: TWICE,
  },
  {
    name: 'starts before all nodes were heard after a restore',
    mode: 'start',
    faultsMax: 1,
    faults: ['restore'],
    protocol: deciding((view) => decide({ ...view, unheard: [] })),
    finding: TWICE,
  },
  {
    name: 'ends a right that was to come to it, and is not its own',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['cancel'],
    protocol: deciding(({ standing, record, self }) =>
      standing.kind === 'refused' && record?.successor?.podUID === self.podUID
        ? plan(change(record, begin(record, record.epoch + 1, undefined)))
        : undefined,
    ),
    finding: /the webhook objects: b may not seize/,
  },
  {
    name: 'stamps what it leaves behind once it has granted it',
    mode: 'pre-copy',
    faultsMax: 0,
    faults: [],
    startsOn: 'first',
    protocol: deciding((view) => {
      const { steps } = decide(view);
      const isGrant = steps.some((step) => step.kind === 'send' && step.message.kind === 'grant');
      const isStamp = (step: Step): boolean => step.kind === 'stamp';
      return isGrant ? plan(...steps.filter((step) => !isStamp(step)), ...steps.filter(isStamp)) : undefined;
    }),
    finding: /the first image is an old copy, and anybody could start on it/,
  },
  {
    name: 'does not stamp again what it had no time to stamp',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['crash'],
    startsOn: 'first',
    protocol: deciding((view) =>
      view.standing.kind === 'granted' ? without(decide(view), (step) => step.kind === 'stamp') : undefined,
    ),
    finding: /the first image is an old copy, and anybody could start on it/,
  },
  {
    name: 'fills an image that anybody could start on',
    mode: 'pre-copy',
    faultsMax: 0,
    faults: [],
    startsOn: 'first',
    protocol: deciding((view) =>
      view.standing.kind === 'none' ? without(decide(view), (step) => step.kind === 'stamp') : undefined,
    ),
    finding: /the second image is an old copy, and anybody could start on it/,
  },
  {
    name: 'goes on before what was given back is current',
    mode: 'pre-copy',
    faultsMax: 2,
    faults: ['crash', 'cancel'],
    startsOn: 'first',
    protocol: deciding((view) => {
      const { steps } = decide(view);
      const [stamp, ...rest] = steps;
      const isBack = rest[0]?.kind === 'journal' && rest[0].entry.kind === 'regained';
      return stamp?.kind === 'stamp' && isBack ? plan(...rest, stamp) : undefined;
    }),
    finding: /could not be started again on its image, first/,
  },
  {
    name: 'starts on whatever image there is',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['death'],
    startsOn: 'first',
    protocol: deciding((view) => {
      const { start, ...wish } = view.wish;
      if (start?.disks === undefined) return undefined;
      const images = start.disks.images.map((image) => ({ ...image, stamp: 'blank' as const }));
      return decide({ ...view, wish: { ...wish, start: { ...start, disks: { ...start.disks, images } } } });
    }),
    finding: /an image that is old|is an old copy/,
  },
  {
    name: 'names a successor before it has reserved one, again and again',
    mode: 'pre-copy',
    faultsMax: 0,
    faults: [],
    protocol: deciding(({ standing, record, wish }) =>
      standing.kind === 'holding' && record?.successor === undefined && record && wish.migrate
        ? plan(change(record, withSuccessor(record, wish.migrate)))
        : undefined,
    ),
    finding: /it never comes to rest/,
  },
];

const isAcross = (step: Plan['steps'][number]): boolean => step.kind === 'record' && step.to.across === true;
const isGranted = ({ standing }: View): boolean => standing.kind === 'granted';

/** The same where the guest goes to another object; `isOneCluster` where that is of the same cluster. */
export const BUGS_ACROSS: readonly (Omit<PlantedBug, 'startsOn' | 'mode'> & {
  readonly mode: Exclude<World['mode'], 'start'>;
  readonly isOneCluster?: boolean;
  /** Whether it takes long to find. */
  readonly isLong?: boolean;
})[] = [
  {
    name: 'does not write into its record where the guest went',
    mode: 'pre-copy',
    faultsMax: 0,
    faults: [],
    protocol: deciding((view) =>
      isGranted(view) || view.standing.kind === 'ended' ? without(decide(view), isAcross) : undefined,
    ),
    finding: /a successor is still named/,
  },
  {
    name: 'does not say again that it took, when the first word was lost',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['loss'],
    protocol: deciding((view) => (view.standing.kind === 'holding' ? decide({ ...view, inbox: [] }) : undefined)),
    finding: /never comes to rest|a machine is left over|a successor is still named/,
  },
  {
    name: 'gives up what it granted because a node is out of service',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['node'],
    isOneCluster: true,
    protocol: deciding((view) =>
      isGranted(view) && view.outOfService.has('node-b') && view.machine !== 'dead'
        ? plan(machine('kill'), { kind: 'journal', entry: { kind: 'ended', epoch: 1 } })
        : undefined,
    ),
    finding: TWICE,
  },
  {
    name: 'seizes what another object may have been granted',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['node'],
    protocol: {
      ...PROTOCOL,
      seize: (record, outOfService) => PROTOCOL.seize(withoutSuccessor(record), outOfService),
    },
    finding: TWICE,
  },
  {
    name: 'goes by the word of its own admin about the node of another object',
    mode: 'pre-copy',
    faultsMax: 2,
    faults: ['node'],
    isOneCluster: true,
    isLong: true,
    protocol: {
      ...PROTOCOL,
      seize: (record, outOfService, answer) => {
        const { across: _, ...near } = record;
        return record.successor === undefined
          ? PROTOCOL.seize(record, outOfService, answer)
          : PROTOCOL.seize(near, outOfService);
      },
    },
    finding: TWICE,
  },
  {
    name: 'leaves a record alone that was restored from before the guest went',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['restore'],
    protocol: {
      ...deciding((view) =>
        view.standing.kind === 'ended' && view.unheard.length > 0 && view.record?.holder === undefined
          ? plan()
          : undefined,
      ),
      isHeard: (view) => view.standing.kind === 'ended' || isHeard(view),
    },
    finding: TWICE,
  },
  {
    name: 'is heard before its record names again whom it granted the right',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['restore'],
    protocol: {
      ...deciding((view) =>
        isGranted(view) && view.record === undefined
          ? without(decide(view), (step) => step.kind === 'record')
          : undefined,
      ),
      isHeard: (view) => isGranted(view) || isHeard(view),
    },
    finding: TWICE,
  },
  {
    name: 'writes no record for what it took',
    mode: 'pre-copy',
    faultsMax: 0,
    faults: [],
    protocol: deciding((view) =>
      view.self.node === 'b' ? without(decide(view), (step) => step.kind === 'record') : undefined,
    ),
    finding: /b executes the guest, and the record does not say so/,
  },
  {
    name: 'does not go on when it was reclaimed',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['node'],
    protocol: deciding((view) =>
      isGranted(view) && (view.record?.epoch ?? 0) > 1 && view.record?.holder?.node === 'a' ? plan() : undefined,
    ),
    finding: /the guest is executed nowhere/,
  },
  {
    name: 'goes on when its admin only wants it to be cancelled',
    mode: 'pre-copy',
    faultsMax: 1,
    faults: ['cancel'],
    protocol: deciding((view) =>
      isGranted(view) && view.wish.isCancelled === true && view.record?.epoch === 1 && view.machine === 'postmigrate'
        ? decide({ ...view, record: { epoch: 2, holder: view.self } })
        : undefined,
    ),
    finding: TWICE,
  },
  {
    name: 'waits for ever with memory that nobody needs',
    mode: 'post-copy',
    faultsMax: 1,
    faults: ['death'],
    protocol: deciding((view) =>
      isGranted(view) && view.machine === 'postcopy'
        ? decide({ ...view, peerMachine: 'unknown', wish: {} })
        : undefined,
    ),
    finding: /a successor is still named|a machine is left over/,
  },
];
