import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IS_FULL } from '../../../test/support/sample.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Schema } from '../../api/schema.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { applySource, applyTarget } from './apply.ts';
import { sourceHalfShape, targetHalfShape } from './half.ts';
import { RECEIVING, RUNNER_HERE, RUNNER_THERE, SENDING, sourceGuest, targetGuest } from './halves.fixture.ts';
import { HALF_BYTES_MAX, parseSourceHalf, parseTargetHalf } from './parse.ts';

/** Whatever arrives: it is a half within its limits or nothing, and changes nothing but what is the other side's. */

/** Values that look like what a schema wants, most of the time. */
function likely(schema: Schema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 400, arbitrary: fitting(schema) }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) });
}

function fitting(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.type === 'object') return schema.properties ? record(schema) : dictionary(schema.additionalProperties);
  if (schema.type === 'array') return fc.array(likely(schema.items ?? {}), { maxLength: 3 });
  if (schema.type === 'boolean') return fc.boolean();
  if (schema.type !== 'integer') return fitText(schema);
  const good = fc.integer({ min: schema.minimum ?? 0, max: 100 });
  return fc.oneof({ weight: 400, arbitrary: good }, { weight: 1, arbitrary: fc.integer() });
}

function fitText({ format, pattern = '' }: Schema): fc.Arbitrary<string> {
  if (format === 'date-time') return fc.constant('2026-05-01T12:00:00Z');
  if (pattern.includes('{43}')) return fc.constant(`${'a'.repeat(43)}=`);
  if (pattern !== '') return fc.constant('1Gi');
  return fc.oneof(
    { weight: 400, arbitrary: fc.constantFrom(...WORDS) },
    { weight: 1, arbitrary: fc.constantFrom(...TEXTS) },
  );
}

const WORDS = ['uid-send', 'uid-receive', 'uid-other', 'guest-here', 'guest-there', 'web', 'shop', 'pod-here'];
const TEXTS = ['__proto__', '', 'x'.repeat(5000)];

function record({ properties = {}, required = [] }: Schema): fc.Arbitrary<unknown> {
  const fields = Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, likely(field)]));
  return fc.record(fields, { requiredKeys: [...required] });
}

function dictionary(values: Schema['additionalProperties']): fc.Arbitrary<unknown> {
  const key = fc.constantFrom('a', 'kubevirt.io/x', 'constructor', 'toString', '10250');
  return fc.dictionary(key, likely(typeof values === 'object' ? values : {}), { maxKeys: 3 });
}

/** A good half, of which some is something else. */
const spoilt = (shape: Schema, good: object): fc.Arbitrary<object> =>
  fitting(shape).map((each) => ({ ...(each as object), ...good }));

const letter = { epoch: 3, migrationUid: 'uid-send', sourcePodUID: 'a', targetPodUID: 'b' };
const identity = { firmwareUUID: 'aaaaaaaa-0000-4000-8000-000000000000', macAddresses: { net: '02:00:00:00:00:0a' } };
const grant = { identity, letter: { ...letter, kind: 'grant' } };
const taken = { letter: { ...letter, kind: 'taken' } };

const sourceHalves = fc.oneof(
  spoilt(sourceHalfShape, { uid: 'uid-send', name: 'web', namespace: 'shop', vmiUID: 'guest-here', ...grant }),
  spoilt(sourceHalfShape, { name: 'web', namespace: 'shop', ...grant }),
  spoilt(sourceHalfShape, {}),
  fc.jsonValue(),
);
const targetHalves = fc.oneof(
  spoilt(targetHalfShape, { uid: 'uid-receive', name: 'new', namespace: 'shop', vmiUID: 'guest-there', ...taken }),
  spoilt(targetHalfShape, { name: 'new', namespace: 'shop', ...taken }),
  spoilt(targetHalfShape, {}),
  fc.jsonValue(),
);

/** How far the guest is that hears it. */
const states: fc.Arbitrary<MigrationState> = fc.record(
  {
    startTimestamp: fc.constant('2026-05-01T11:00:00Z'),
    targetRunner: fc.constant(RUNNER_THERE),
    targetNode: fc.constant('node-b'),
    targetPod: fc.constant('pod-b'),
    sourceNode: fc.constant('node-a'),
    completed: fc.boolean(),
    failed: fc.boolean(),
    failureReason: fc.constant('why'),
    abortRequested: fc.boolean(),
    downtimeMs: fc.constant(7),
    mode: fc.constantFrom('PreCopy', 'PostCopy'),
    progress: fc.constant({ percent: 50 }),
  },
  { requiredKeys: [] },
);

/** What only this side writes, whatever the other says. */
const OF_TARGET: readonly (keyof MigrationState)[] = [
  'targetState',
  'targetNode',
  'targetPod',
  'targetNodeAddress',
  'targetRunner',
  'targetLetter',
  'targetNodeDomainDetected',
  'targetNodeDomainReadyTimestamp',
  'downtimeMs',
  'completed',
  'failed',
  'failureReason',
  'endTimestamp',
  'abortStatus',
  'migrationConfiguration',
  'migrationPolicyName',
];
const OF_SOURCE: readonly (keyof MigrationState)[] = [
  'migrationUid',
  'sourceState',
  'sourceNode',
  'sourcePod',
  'sourceLetter',
  'startTimestamp',
  'mode',
  'progress',
  'channel',
  'decisions',
  'failed',
  'failureReason',
  'abortStatus',
];

function changed(guest: VirtualMachineInstance, told: { migrationState?: MigrationState } | undefined): string[] {
  if (!told) return [];
  const [before, after] = [
    new Map(Object.entries(guest.status?.migrationState ?? {})),
    new Map(Object.entries(told.migrationState ?? {})),
  ];
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (field) => !deepEqual(before.get(field), after.get(field)),
  );
}

const runs = { numRuns: IS_FULL ? 6000 : 1500 };

describe('whatever arrives', () => {
  it('is within its limits, or refused', () => {
    fc.assert(
      fc.property(sourceHalves, targetHalves, (one, other) => {
        for (const parsed of [parseSourceHalf(one), parseTargetHalf(other)]) {
          if ('problem' in parsed) continue;
          const text = JSON.stringify(parsed.half);
          expect(text.length).toBeLessThanOrEqual(HALF_BYTES_MAX);
          expect(text).not.toContain('x'.repeat(2049));
          expect(Object.getPrototypeOf(parsed.half)).toBe(Object.prototype);
        }
      }),
      runs,
    );
  });

  it('changes nothing at the target that is the target’s', () => {
    let applied = 0;
    fc.assert(
      fc.property(sourceHalves, states, (json, state) => {
        const parsed = parseSourceHalf(json);
        if ('problem' in parsed) return;
        const guest = targetGuest({ ...state, sourceState: { runner: RUNNER_HERE, epoch: 3 } });
        const told = applySource({ migration: RECEIVING, guest }, parsed.half);
        applied += told ? 1 : 0;
        expect(changed(guest, told).filter((field) => OF_TARGET.includes(field as never))).toEqual([]);
        const { sourceState } = told?.migrationState ?? {};
        if (sourceState && state.targetNode !== undefined) {
          expect(sourceState).toMatchObject({ runner: RUNNER_HERE, epoch: 3 });
        }
        expect(sourceState?.virtualMachineInstanceUID).not.toBe('guest-there');
      }),
      runs,
    );
    expect(applied).toBeGreaterThan(100);
  });

  it('changes nothing at the source that is the source’s', () => {
    let applied = 0;
    fc.assert(
      fc.property(targetHalves, states, (json, state) => {
        const parsed = parseTargetHalf(json);
        if ('problem' in parsed) return;
        const guest = sourceGuest(state);
        const told = applyTarget({ migration: SENDING, guest }, parsed.half);
        applied += told ? 1 : 0;
        expect(changed(guest, told).filter((field) => OF_SOURCE.includes(field as never))).toEqual([]);
        const { targetRunner, targetNode, targetState } = told?.migrationState ?? {};
        if (told && state.startTimestamp !== undefined)
          expect([targetRunner, targetNode]).toEqual([state.targetRunner, state.targetNode]);
        expect(targetState?.virtualMachineInstanceUID).not.toBe('guest-here');
      }),
      runs,
    );
    expect(applied).toBeGreaterThan(100);
  });
});
