import { expect, it } from 'vitest';
import type { MigrationDecision } from '../../api/kubevirt/migration-state.ts';
import { frozenOptions } from '../../migration/policies/options.ts';
import { firstDecisions, withDecision } from './copy-decisions.ts';

it('keeps what was decided, the first and the last where there is no room for all', () => {
  let decisions: readonly MigrationDecision[] = [];
  for (let index = 0; index < 200; index++) {
    decisions = withDecision(decisions, { kind: 'recover', reason: 'LinkBroken', message: `${index}` }, index, 7);
    decisions = withDecision(decisions, { kind: 'keep-copying', reason: 'FirstPass', message: '' }, index, 7);
  }
  expect(decisions).toHaveLength(64);
  expect(decisions.map(({ message }) => Number(message))).toEqual([
    ...Array.from({ length: 32 }, (_, index) => index),
    ...Array.from({ length: 32 }, (_, index) => 168 + index),
  ]);
  expect(decisions[0]).toEqual({
    time: '1970-01-01T00:00:00Z',
    decision: 'recover',
    reason: 'LinkBroken',
    message: '0',
    iteration: 7,
  });
});

it.each([
  ['', {}, true],
  ['', { disableTLS: true }, false],
  ['keep-encryption', { disableTLS: true }, true],
  ['forgo-post-copy', { disableTLS: true, allowPostCopy: true }, false],
  ['', { disableTLS: true, allowPostCopy: true, allowWorkloadDisruption: false }, false],
])('says "%s" first of %j', (expected, configuration, isEncrypted) => {
  const decisions = firstDecisions(frozenOptions(configuration), { isEncrypted }, 0);
  expect(decisions.map(({ decision }) => decision).join()).toBe(expected);
});
