import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import { targetReport } from './migration-report.ts';

const runner = (node: string) => ({ node, nodeUID: `${node}-uid`, podUID: `${node}-pod` });
const ATTEMPT: Attempt = {
  epoch: 4,
  source: runner('a'),
  target: runner('b'),
  sourceMigrationUID: 'move',
  targetMigrationUID: 'move',
};
const RECEIVING: Standing = { kind: 'receiving', attempt: ATTEMPT };
const TAKEN: Standing = { kind: 'holding', epoch: 5, mustContinue: true, isCompleted: false };
const PLACE = { address: '10.0.0.2', port: 7000 };
const STATE: MigrationState = { migrationUid: 'move' };
const WRITTEN = { targetNodeAddress: PLACE.address, targetDirectMigrationNodePorts: { 7000: 0 } };

describe('a target', () => {
  const told = (standing: Standing, state: MigrationState, more: object) =>
    targetReport(state, standing, { self: runner('b'), place: PLACE, isWaiting: true, ...more }, 0);

  it('says where it is once its machine waits, and not before', () => {
    expect(told(RECEIVING, STATE, { isWaiting: false })).toEqual({});
    expect(told(RECEIVING, STATE, {})).toEqual({ ...WRITTEN, targetRunner: runner('b') });
    expect(told(RECEIVING, { migrationUid: 'another' }, {})).toEqual({});
  });

  it('says it again where its agent was started anew, however far the copy is', () => {
    const before = { ...STATE, targetNodeAddress: '10.0.0.2', targetDirectMigrationNodePorts: { 6000: 0 } };
    expect(told(RECEIVING, before, { isWaiting: false })).toMatchObject(WRITTEN);
  });

  it('says that the guest has moved, and in post-copy that its memory follows', () => {
    expect(told(TAKEN, STATE, {})).toMatchObject({ completed: true, targetNodeDomainDetected: true });
    const ahead = told(TAKEN, STATE, { isPostCopy: true });
    expect(ahead).toMatchObject({ mode: 'PostCopy', targetNodeDomainDetected: true });
    expect(ahead.completed).toBeUndefined();
  });
});
