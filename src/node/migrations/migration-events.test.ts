import { describe, expect, it } from 'vitest';
import { migrationEvents } from './migration-events.ts';

const handedOff = { migrationUid: 'm', sourceNode: 'a', targetNode: 'b' };
const waiting = { ...handedOff, targetNodeAddress: '10.0.0.2', targetDirectMigrationNodePorts: { 8443: 0 } };
const begun = { ...waiting, startTimestamp: '2026-01-01T00:00:00Z' };

const told = (...[before, after]: Parameters<typeof migrationEvents>): string[] =>
  migrationEvents(before, after).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);

describe('what people are told of a migration', () => {
  it.each<[string, Parameters<typeof migrationEvents>, string[]]>([
    ['nothing of a hand-off', [undefined, handedOff], []],
    [
      'that the target waits',
      [handedOff, waiting],
      [
        'Normal PreparingTarget: VirtualMachineInstance Migration Target Prepared.',
        'Normal PreparingTarget: Migration Target is listening at 10.0.0.2, on ports: 8443',
      ],
    ],
    ['that it has begun', [waiting, begun], ['Normal Migrating: VirtualMachineInstance is migrating.']],
    ['nothing of its progress', [begun, { ...begun, progress: { percent: 3 } }], []],
    [
      'that it has ended well',
      [begun, { ...begun, completed: true }],
      ['Normal Migrated: The VirtualMachineInstance migrated to node b.'],
    ],
    [
      'that it failed',
      [begun, { ...begun, completed: true, failed: true, failureReason: 'no link' }],
      ['Warning Migrated: VirtualMachineInstance migration uid m failed. reason:no link'],
    ],
    [
      'nothing twice',
      [
        { ...begun, completed: true },
        { ...begun, completed: true, downtimeMs: 3 },
      ],
      [],
    ],
  ])('%s', (_, [before, after], expected) => expect(told(before, after)).toEqual(expected));
});
