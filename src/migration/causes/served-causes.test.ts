import { describe, expect, it } from 'vitest';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import type { MigrationCause } from '../../api/kubevirt/migration-cause.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { OUTDATED_LAUNCHER_LABEL } from '../../api/kubevirt/well-known.ts';
import { at, guestWith, handedOff, migrationIn } from '../phase/moves.fixture.ts';
import { earliestDeadlineMs, effectivePriority } from '../slots/order.ts';
import { mostUrgent, servedCauses } from './served-causes.ts';

const UP_TO_DATE = { isOutdated: false };
const OUTDATED = { isOutdated: true };

const marked = (...evacuationCauses: EvacuationCause[]): VirtualMachineInstance =>
  guestWith({ evacuationNodeName: 'node-a', evacuationCauses });

const served = (guest: VirtualMachineInstance | undefined, migration = migrationIn('Pending'), ground = UP_TO_DATE) =>
  servedCauses(migration, guest, ground);

const OWN = { cause: 'User', priority: 0, since: at(60_000) };

describe('a migration serves', () => {
  it('its own cause, of the class that it was asked for with', () => {
    const made = migrationIn('');
    expect(served(guestWith())).toEqual([OWN]);
    expect(served(undefined)).toEqual([OWN]);
    expect(served(guestWith(), { ...made, spec: { ...made.spec, priority: 'user-triggered' } })).toEqual([
      { ...OWN, priority: 50 },
    ]);
  });

  it.each<[MigrationCause, number]>([
    ['APIEviction', 100],
    ['Preemption', 100],
    ['NoExecuteTaint', 100],
    ['DrainTaint', 100],
    ['Descheduler', 20],
  ])('%s of its guest, as urgent as %d', (cause, priority) => {
    const causes = served(marked({ cause, since: at(5000) }));
    expect(causes).toEqual([OWN, { cause, priority, since: at(5000) }]);
    expect(effectivePriority(undefined, causes)).toBe(priority);
  });

  it('the deadline of a pod that is being deleted', () => {
    const cause = { cause: 'Preemption', deadline: at(-60_000), podUID: 'pod-a', message: 'for web-2' } as const;
    const causes = served(marked(cause));
    expect(causes).toContainEqual({ cause: 'Preemption', priority: 100, deadline: at(-60_000), message: 'for web-2' });
    expect(earliestDeadlineMs(causes)).toBe(Date.parse(at(-60_000)));
  });

  it('a mark that nobody gave a cause for as an eviction', () => {
    expect(served(marked())).toEqual([OWN, { cause: 'APIEviction', priority: 100 }]);
  });

  it('no mark that is for another node', () => {
    const guest = guestWith({ evacuationNodeName: 'node-c', evacuationCauses: [{ cause: 'APIEviction' }] });
    expect(served(guest)).toEqual([OWN]);
  });

  it('a cause that its guest has, too, once: as urgent and as old as either', () => {
    const made = migrationIn('Pending');
    const migration = {
      ...made,
      spec: { ...made.spec, cause: 'APIEviction' as const, priority: 'system-maintenance' },
    };
    const guest = marked({ cause: 'APIEviction', since: at(90_000), untilUncordon: true });
    expect(served(guest, migration)).toEqual([{ cause: 'APIEviction', priority: 100, since: at(90_000) }]);
  });

  it.each(['HotVCPUChange', 'HotMemoryChange', 'VolumesChange', 'MigrationRequired'])('the change %s', (type) => {
    const conditions = [{ type, status: 'True' as const, lastTransitionTime: at(7000) }];
    expect(served(guestWith({ conditions }))).toEqual([
      OWN,
      { cause: 'WorkloadUpdate', priority: 50, since: at(7000), message: type },
    ]);
    expect(served(guestWith({ conditions: [{ type, status: 'False' }] }))).toEqual([OWN]);
  });

  it('an old launcher, where those are moved for that', () => {
    const expected = [OWN, { cause: 'WorkloadUpdate', priority: 100 }];
    expect(served(guestWith({}), migrationIn('Pending'), OUTDATED)).toEqual(expected);
  });

  it('no old launcher on the word of a label, by which any owner could go before all others', () => {
    expect(served(guestWith({}, { labels: { [OUTDATED_LAUNCHER_LABEL]: '' } }))).toEqual([OWN]);
  });

  it('several causes by one move: drained, outdated and rebalanced', () => {
    const guest = marked({ cause: 'Descheduler' }, { cause: 'APIEviction', untilUncordon: true });
    const causes = served(guest, migrationIn('Pending'), OUTDATED);
    expect(causes.map(({ cause }) => cause)).toEqual(['User', 'Descheduler', 'APIEviction', 'WorkloadUpdate']);
    expect(effectivePriority(undefined, causes)).toBe(100);
  });
});

describe('a cause that is withdrawn', () => {
  const drained = { cause: 'APIEviction' as const, priority: 100 };
  it('does not lift any more what has not begun', () => {
    const made = migrationIn('Pending');
    const migration = { ...made, status: { ...made.status, causes: [drained] } };
    expect(served(guestWith(), migration)).toEqual([OWN]);
  });

  it('stays told of what the agents have: it was served, and the guest may have arrived', () => {
    const made = migrationIn('Running');
    const migration = { ...made, status: { ...made.status, causes: [drained] } };
    expect(served(handedOff({ completed: true }), migration)).toEqual([OWN, drained]);
  });
});

describe('the most urgent of several causes', () => {
  it.each<[string, EvacuationCause[], MigrationCause]>([
    ['the one of the higher class', [{ cause: 'Descheduler' }, { cause: 'APIEviction' }], 'APIEviction'],
    ['the one with a deadline', [{ cause: 'APIEviction' }, { cause: 'Preemption', deadline: at(0) }], 'Preemption'],
    [
      'the one with the earlier deadline',
      [
        { cause: 'Preemption', deadline: at(0) },
        { cause: 'NoExecuteTaint', deadline: at(1000) },
      ],
      'NoExecuteTaint',
    ],
    ['the first of equals', [{ cause: 'DrainTaint' }, { cause: 'APIEviction' }], 'DrainTaint'],
    ['an eviction where none was given', [], 'APIEviction'],
  ])('is %s', (_, causes, expected) => {
    expect(mostUrgent(causes).cause).toBe(expected);
  });
});
