import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SlotLedger } from './ledger.ts';
import { formatLedger, LedgerTextError, parseLedger } from './ledger-text.ts';

const text = fc.string({ minLength: 1, maxLength: 12 });
const count = fc.nat();
const common = {
  members: fc.array(fc.record({ namespace: text, name: text, uid: text }), { minLength: 1, maxLength: 2 }),
  targetNode: fc.option(text, { nil: undefined }),
  state: fc.constantFrom('reserved' as const, 'committed' as const),
  sinceMs: fc.integer({ min: 0, max: 2e12 }),
  uid: text,
};
const holder = fc.oneof(
  fc.record({ ...common, kind: fc.constantFrom('local' as const, 'send' as const), sourceNode: text }),
  fc.record({ ...common, kind: fc.constant('receive' as const), sourceNode: fc.constant(undefined) }),
);
const ledger: fc.Arbitrary<SlotLedger> = fc.record({
  limits: fc.record({ perCluster: count, outboundPerNode: count, inboundPerNode: count }),
  limitsVersion: text,
  holders: fc.array(holder).map((holders) => new Map(holders.map((each) => [each.uid, each]))),
});

const LIMITS = '{"perCluster":5,"outboundPerNode":2,"inboundPerNode":2,"version":"7"}';
const member = { namespace: 'shop', name: 'm', uid: 'u' };
const HOLDER = { uid: 'u', kind: 'local', state: 'reserved', since: '2026-01-01T00:00:00.000Z', sourceNode: 'a' };
const line = (change: object): string => `${JSON.stringify({ ...HOLDER, members: [member], ...change })}\n`;

describe('the text of a ledger', () => {
  it('says all that the ledger says', () => {
    fc.assert(
      fc.property(ledger, (each) => {
        expect(parseLedger(formatLedger(each))).toEqual(each);
      }),
    );
  });

  it('has a line for each holder', () => {
    const { holders } = parseLedger({ limits: LIMITS, holders: line({}) + line({ uid: 'v' }) });
    expect([...holders.keys()]).toEqual(['u', 'v']);
    const { holders: written } = formatLedger(parseLedger({ limits: LIMITS, holders: line({}) }));
    expect(written.split('\n')).toHaveLength(2);
  });

  it.each([
    ['no limits', { holders: line({}) }],
    ['limits that are no numbers', { limits: LIMITS.replace('5', '"5"') }],
    ['limits below nothing', { limits: LIMITS.replace('5', '-5') }],
    ['half a line', { limits: LIMITS, holders: line({}).slice(0, 20) }],
    ['a line that is no object', { limits: LIMITS, holders: '[]\n' }],
    ['one holder twice', { limits: LIMITS, holders: line({}) + line({}) }],
    ['a holder without a name', { limits: LIMITS, holders: line({ uid: '' }) }],
    ['a holder of no kind', { limits: LIMITS, holders: line({ kind: 'constructor' }) }],
    ['a holder in no state', { limits: LIMITS, holders: line({ state: undefined }) }],
    ['a holder without members', { limits: LIMITS, holders: line({ members: [] }) }],
    ['a member without a UID', { limits: LIMITS, holders: line({ members: [{ ...member, uid: 1 }] }) }],
    ['a receiver that leaves a node', { limits: LIMITS, holders: line({ kind: 'receive' }) }],
    ['one that leaves no node', { limits: LIMITS, holders: line({ sourceNode: undefined }) }],
    ['a time that is none', { limits: LIMITS, holders: line({ since: 'once' }) }],
  ])('is refused with %s', (_name, wrong) => expect(() => parseLedger(wrong)).toThrow(LedgerTextError));
});
