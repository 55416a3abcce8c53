import { describe, expect, it } from 'vitest';
import { ApiError, type StatusReason } from '../api/status.ts';
import { type Course, type Ending, isExpired, isTrouble, needsDelay, nextCourse, START } from './reflector-steps.ts';
import { TransportError } from './transport.ts';

const refused = (code: number, reason: StatusReason = 'Unknown'): Ending => ({
  kind: 'refused',
  error: new ApiError(code, reason, ''),
});
const broken: Ending = { kind: 'broken', error: new TransportError('broken') };
const [listed, ended, silent, unclear, past] = (['listed', 'ended', 'silent', 'unclear', 'past'] as const).map(
  (kind) => ({
    kind,
  }),
) as Ending[];

const LIST: Course = { ...START, step: 'list', canStream: false };
const WATCH: Course = { ...START, step: 'watch', canStream: false };
const MODERN_WATCH: Course = { ...START, step: 'watch' };

describe('the next step', () => {
  const cases: readonly [string, Course, Ending | undefined, boolean, Partial<Course>][] = [
    ['a list is complete', LIST, listed, true, { step: 'watch', canStream: false }],
    ['a list is broken', LIST, broken, false, { step: 'list', isPaged: true }],
    ['a list is refused', LIST, refused(500), false, { step: 'list', isPaged: true }],
    ['a page has expired', LIST, refused(410, 'Expired'), false, { step: 'list', isPaged: false }],
    ['the whole list is refused', { ...LIST, isPaged: false }, refused(500), false, { step: 'list', isPaged: true }],
    ['the whole list is complete', { ...LIST, isPaged: false }, listed, true, { step: 'watch', isPaged: true }],
    ['a list is of the past', LIST, past, false, { step: 'list' }],
    ['streams are not offered', START, refused(422), false, { step: 'list', canStream: false }],
    ['a stream fails inside the server', START, refused(500), false, { step: 'list', canStream: true }],
    ['a stream is refused for now', START, refused(503), false, { step: 'stream', canStream: true }],
    ['the resource is not there yet', START, refused(404), false, { step: 'stream', canStream: true }],
    ['a stream is broken', START, broken, false, { step: 'stream' }],
    ['a stream ends without its mark', START, ended, false, { step: 'list', canStream: true }],
    ['a stream falls silent without its mark', START, silent, false, { step: 'list', canStream: true }],
    ['a stream is of the past', START, past, false, { step: 'stream' }],
    ['a stream ends after its mark', START, ended, true, { step: 'watch' }],
    ['a stream expires after its mark', START, refused(410, 'Expired'), true, { step: 'stream' }],
    ['a watch ends', WATCH, ended, true, { step: 'watch', refusals: 0 }],
    ['a watch is broken', { ...WATCH, refusals: 3 }, broken, true, { step: 'watch', refusals: 0 }],
    ['a watch falls silent', WATCH, silent, true, { step: 'watch' }],
    ['a watch is refused', WATCH, refused(500), true, { step: 'watch', refusals: 1 }],
    ['a watch is refused too often', { ...WATCH, refusals: 4 }, refused(500), true, { step: 'list', refusals: 0 }],
    ['a watch has expired', WATCH, refused(410, 'Expired'), true, { step: 'list' }],
    ['a watch has expired where streams are offered', MODERN_WATCH, refused(410, 'Gone'), true, { step: 'stream' }],
    ['a watch is unclear', MODERN_WATCH, unclear, true, { step: 'stream' }],
  ];

  it.each(cases)('when %s', (_name, course, ending, hasSnapshot, expected) => {
    expect(nextCourse(course, ending as Ending, hasSnapshot)).toMatchObject(expected);
  });
});

describe('a pause', () => {
  it('comes after every failure, but not after a success, nor before the list that stands in for a stream', () => {
    expect(needsDelay(LIST, listed as Ending)).toBe(false);
    expect(needsDelay(START, refused(422))).toBe(false);
    expect(needsDelay(START, refused(503))).toBe(true);
    expect(needsDelay(LIST, refused(422))).toBe(true);
    for (const ending of [ended, silent, unclear, past, broken]) expect(needsDelay(WATCH, ending as Ending)).toBe(true);
  });
});

describe('trouble', () => {
  it.each<[string, Course, Ending, boolean]>([
    ['a list is refused', LIST, refused(403), true],
    ['a watch is refused', WATCH, refused(500), true],
    ['a stream is refused', START, refused(403), true],
    ['a stream fails inside the server, and a list comes next', START, refused(500), false],
    ['streams are not offered', START, refused(422), false],
    ['a watch is broken', WATCH, broken, false],
  ])('when %s', (_name, course, ending, expected) => {
    expect(isTrouble(course, ending, nextCourse(course, ending, course.step === 'watch'))).toBe(expected);
  });
});

describe('expired', () => {
  it.each<[number, StatusReason, boolean]>([
    [410, 'Expired', true],
    [410, 'Gone', true],
    [410, 'Unknown', true],
    [500, 'Expired', true],
    [404, 'NotFound', false],
  ])('%i %s: %s', (code, reason, expected) => {
    expect(isExpired(new ApiError(code, reason, ''))).toBe(expected);
  });
});
