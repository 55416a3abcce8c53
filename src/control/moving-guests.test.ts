import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import { isMoving, patienceAmong, tellsOf } from './moving-guests.ts';

const guest = (status: VirtualMachineInstance['status'], metadata = {}): VirtualMachineInstance =>
  ({ metadata: { name: 'web', ...metadata }, spec: { domain: {} }, status }) as VirtualMachineInstance;

describe('that a guest has changed', () => {
  const moving = { phase: 'Running', migrationState: { migrationUid: 'one' } } as const;

  it('can wait while it is being moved', () => {
    expect(isMoving(guest(moving))).toBe(true);
  });

  it.each([
    ['it is not moved', guest({ phase: 'Running' })],
    ['nothing is left of its move', guest({ phase: 'Running', migrationState: {} })],
    ['its move is over', guest({ ...moving, migrationState: { migrationUid: 'one', completed: true } })],
    ['it moves to another cluster', guest({ ...moving, migrationState: { migrationUid: 'one', sourceState: {} } })],
    ['it has ended meanwhile', guest({ ...moving, phase: 'Failed' })],
    ['it is to be deleted', guest(moving, { deletionTimestamp: '2030-01-01T00:00:00Z' })],
  ])('is looked at at once where %s', (_, each) => {
    expect(isMoving(each)).toBe(false);
  });
});

it('news can wait for longer, up to a limit, the more guests move', () => {
  expect([0, 1, 5, 20, 1000].map(patienceAmong)).toEqual([100, 100, 300, 1050, 5000]);
});

it('a guest tells of its migration, and of both halves of one to elsewhere', () => {
  const halves = { sourceState: { migrationUID: 'two' }, targetState: { migrationUID: 'three' } };
  const moved = guest({ migrationState: { migrationUid: 'one', ...halves } });
  expect(['one', 'two', 'three', 'four', undefined].filter((uid) => tellsOf(moved, uid))).toEqual([
    'one',
    'two',
    'three',
  ]);
  expect([undefined, guest({})].some((each) => tellsOf(each, 'one') || tellsOf(each, undefined))).toBe(false);
});
