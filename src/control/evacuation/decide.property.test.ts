import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import { EVICTION_STRATEGIES, evictionOutcomeOf } from '../../api/kubevirt/eviction-strategy.ts';
import { MIGRATION_PHASES } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { sourceNodeOf } from '../../migration/phase/facts.ts';
import { decideMove, type EvacuationFacts, isEvacuation, markAfter } from './decide.ts';
import { DRAIN_TAINT, factsOf, guestWith, migrationIn, NOW, nodeWith, podWith, STUCK } from './evacuation.fixture.ts';

/** Whatever is known of a guest. */

const causes = fc.uniqueArray(
  fc.record(
    {
      cause: fc.constantFrom('APIEviction', 'Descheduler', 'Preemption', 'NoExecuteTaint', 'DrainTaint'),
      untilUncordon: fc.boolean(),
      podUID: fc.constantFrom('pod-a', 'pod-0'),
    },
    { requiredKeys: ['cause'] },
  ),
  { selector: ({ cause }) => cause },
) as fc.Arbitrary<EvacuationCause[]>;

const guests = fc
  .record({
    strategy: fc.constantFrom(...EVICTION_STRATEGIES),
    nodeName: fc.constantFrom('node-a', 'node-b', undefined),
    mark: fc.constantFrom('node-a', 'node-b', undefined),
    holder: fc.constantFrom('node-a', 'node-b', undefined),
    causes: fc.option(causes, { nil: undefined }),
    isStuck: fc.boolean(),
    isHandedOff: fc.boolean(),
  })
  .map(({ strategy, nodeName, mark, holder, causes: evacuationCauses, isStuck, isHandedOff }) => {
    const runner = { node: holder ?? '', nodeUID: 'uid', podUID: 'pod-a' };
    const guest = guestWith(strategy, {
      ...(isStuck ? STUCK : {}),
      ...(mark ? { evacuationNodeName: mark } : {}),
      ...(evacuationCauses ? { evacuationCauses } : {}),
      ...(isHandedOff ? { migrationState: { migrationUid: 'move-0' } } : {}),
      rightToRun: { epoch: 1, ...(holder ? { holder: runner } : {}) },
    });
    const { nodeName: _, ...status } = guest.status ?? {};
    return { ...guest, status: { ...status, ...(nodeName ? { nodeName } : {}) } };
  });

const nodes = fc.option(
  fc.record({ unschedulable: fc.boolean(), taints: fc.constantFrom([], [DRAIN_TAINT]) }).map((spec) => nodeWith(spec)),
  { nil: undefined },
);

const migrations = fc.array(
  fc
    .record({
      phase: fc.constantFrom(...MIGRATION_PHASES),
      cause: fc.constantFrom('User', 'APIEviction', 'DrainTaint'),
    })
    .map(({ phase, cause }) => migrationIn(phase, cause as 'User')),
  { maxLength: 3 },
);

const pods = fc.array(fc.constantFrom({}, { deletionTimestamp: NOW }), { maxLength: 3 });

const facts: fc.Arbitrary<EvacuationFacts> = fc
  .record({ guest: guests, node: nodes, migrations, pods })
  .map(({ guest, node, migrations: all, pods: metadatas }) =>
    factsOf({
      guest,
      node,
      migrations: all.map((each, index) => ({ ...each, metadata: { ...each.metadata, uid: `move-${index}` } })),
      pods: metadatas.map((metadata, index) => podWith(['pod-a', 'pod-b', 'pod-c'][index] ?? '', metadata)),
    }),
  );

const marked = (known: EvacuationFacts): EvacuationFacts =>
  ({ ...known, guest: { ...known.guest, status: { ...known.guest.status, ...markAfter(known) } } }) as EvacuationFacts;

const holds = (check: (known: EvacuationFacts) => void): void =>
  fc.assert(fc.property(facts, check), { numRuns: 2000 });

describe('whatever is known of a guest', () => {
  it('its mark is written once', () => {
    holds((known) => {
      const next = marked(known);
      expect(markAfter(next)).toEqual(markAfter(known));
    });
  });

  it('it is marked for the node that it is on, or for none', () => {
    holds((known) => {
      const { evacuationNodeName, evacuationCauses } = markAfter(known);
      if (evacuationNodeName === undefined) expect(evacuationCauses).toBeUndefined();
      else expect(evacuationNodeName).toBe(known.guest.status?.nodeName);
    });
  });

  it('nobody wants it to leave who did not before, but for the taint', () => {
    holds((known) => {
      const before = known.guest.status?.evacuationCauses ?? [];
      for (const each of markAfter(known).evacuationCauses ?? [])
        if (each.cause !== 'DrainTaint') expect(before).toContainEqual(each);
        else expect(known.node === undefined || before.includes(each) || known.node.spec?.taints?.length).toBeTruthy();
    });
  });

  it('it gets a migration only where it is marked and is to be moved, and has none', () => {
    holds((known) => {
      const next = marked(known);
      const { isNeeded, canceled } = decideMove(next);
      if (!isNeeded) return;
      expect(next.guest.status?.evacuationNodeName).toBe(sourceNodeOf(next.guest));
      expect(evictionOutcomeOf(next.guest, {})).toBe('Migrate');
      expect(canceled).toEqual([]);
      expect(next.migrations.every(({ status }) => ['Succeeded', 'Failed'].includes(status?.phase ?? ''))).toBe(true);
    });
  });

  it('nothing is taken back that is not ours, has begun, or is wanted', () => {
    holds((known) => {
      const next = marked(known);
      for (const migration of decideMove(next).canceled) {
        expect(isEvacuation(migration)).toBe(true);
        expect(['', 'Pending', 'Scheduling', 'Scheduled', 'WaitingForSync', 'Synchronizing']).toContain(
          migration.status?.phase,
        );
        expect(next.guest.status?.migrationState?.migrationUid).not.toBe(migration.metadata.uid);
        const isWanted = next.guest.status?.evacuationNodeName !== undefined;
        expect(isWanted && next.guest.spec.evictionStrategy !== 'External').toBe(false);
      }
    });
  });
});
