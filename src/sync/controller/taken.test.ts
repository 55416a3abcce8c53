import { describe, expect, it } from 'vitest';
import { RECEIVING, SENDING, sourceGuest, targetGuest } from '../../migration/halves/halves.fixture.ts';
import { taken } from './taken.ts';

const source = { uid: 'uid-send', name: 'web', namespace: 'shop', vmiUID: 'guest-here' };
const over = { ...RECEIVING, status: { phase: 'Succeeded' as const } };
const elsewhere = targetGuest({ migrationUid: 'uid-other', targetState: { migrationUID: 'uid-other-target' } });

describe('how a source ended', () => {
  const ended = { ...source, verdict: { phase: 'Succeeded' as const } };

  it('is known once it is written into the guest', () => {
    const { status, isKnown } = taken('target', over, targetGuest({ migrationUid: 'uid-send' }), ended);
    expect(status?.migrationState?.sourceState?.verdict?.phase).toBe('Succeeded');
    expect(isKnown).toBe(true);
  });

  it('is not called known where the guest is in another migration, and nothing would be on record', () => {
    expect(taken('target', over, elsewhere, ended)).toEqual({ status: undefined, isKnown: false });
  });
});

it('takes anything else that its source says late for known', () => {
  expect(taken('target', over, elsewhere, source)).toEqual({ status: undefined, isKnown: true });
});

it('takes how a target ended for known at a source, which can ask whether it is gone', () => {
  const target = { uid: 'uid-receive', name: 'new', namespace: 'shop', vmiUID: 'guest-there' };
  const failed = { ...SENDING, status: { phase: 'Failed' as const } };
  const guest = sourceGuest({ migrationUid: 'uid-other' });
  const ended = { ...target, verdict: { phase: 'Failed' as const } };
  expect(taken('source', failed, guest, ended)).toEqual({ status: undefined, isKnown: true });
});
