import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RECORD_BYTES_MAX } from './journal.ts';
import { commitRecord, type JournalSpace, releaseSpace, reserveSpace, spaceOf } from './journal-space.ts';

describe('room in the journal', () => {
  it('is there for a grant whatever others write meanwhile', () => {
    let { space, zerosBytes } = reserveSpace(spaceOf(100, 100), 'vm');
    expect(zerosBytes).toBe(RECORD_BYTES_MAX);
    const other = commitRecord(space, 'other', new Uint8Array(500));
    expect(other).toMatchObject({ zerosBytes: 500, write: { at: 100 } });
    space = other.space;
    const grant = commitRecord(space, 'vm', new Uint8Array(RECORD_BYTES_MAX));
    expect(grant).toMatchObject({ zerosBytes: 0, write: { at: 600 } });
  });
  it('is set aside once, and given back', () => {
    const { space } = reserveSpace(spaceOf(0, 0), 'vm');
    expect(reserveSpace(space, 'vm')).toMatchObject({ zerosBytes: 0, space });
    expect(releaseSpace(space, 'vm')).toEqual({ writtenBytes: 0, fileBytes: RECORD_BYTES_MAX, reservedBy: [] });
  });
  it('never fails who has it, in any order of things', () => {
    const act = fc.record({
      what: fc.constantFrom('reserve', 'release', 'commit'),
      owner: fc.constantFrom('a', 'b', 'c'),
    });
    fc.assert(
      fc.property(fc.array(act), (acts) => {
        let space: JournalSpace = spaceOf(0, 0);
        for (const { what, owner } of acts) {
          const hadRoom = space.reservedBy.includes(owner);
          if (what === 'reserve') ({ space } = reserveSpace(space, owner));
          else if (what === 'release') space = releaseSpace(space, owner);
          else {
            const change = commitRecord(space, owner, new Uint8Array(1_000));
            if (hadRoom) expect(change.zerosBytes).toBe(0);
            ({ space } = change);
          }
          expect(space.fileBytes).toBeGreaterThanOrEqual(
            space.writtenBytes + space.reservedBy.length * RECORD_BYTES_MAX,
          );
        }
      }),
    );
  });
});
