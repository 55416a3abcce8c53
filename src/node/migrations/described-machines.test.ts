import { describe, expect, it } from 'vitest';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import { fileDifferences, type MachineDescription, sentFiles } from './described-machines.ts';

const [OWN, SHARED] = ['virtio 4', 'virtio 5'];

function description(files: Readonly<Record<string, string>>): MachineDescription {
  return {
    machine: { spec: SMALL_MACHINE, ramBytes: 1 },
    copiedDisks: [{ bus: 'virtio', at: 4 }],
    diskFiles: new Map(
      Object.entries(files).map(([place, text]) => {
        const [host = '', file = ''] = text.split('/');
        return [place, { host, file }];
      }),
    ),
  };
}

const compare = (here: Readonly<Record<string, string>>, there: Readonly<Record<string, string>>): readonly string[] =>
  fileDifferences(description(here), sentFiles(description(there).diskFiles));

describe('the files behind the disks of two machines', () => {
  it.each<[string, Record<string, string>, Record<string, string>, RegExp | undefined]>([
    ['one that is copied to another', { [OWN]: 'a/1' }, { [OWN]: 'a/2' }, undefined],
    ['one that is copied to another host', { [OWN]: 'a/1' }, { [OWN]: 'b/1' }, undefined],
    ['one that would be copied onto itself', { [OWN]: 'a/1' }, { [OWN]: 'a/1' }, /copied onto itself/],
    ['one that is shared', { [SHARED]: 'a/1' }, { [SHARED]: 'a/1' }, undefined],
    ['one that is called shared, and is not', { [SHARED]: 'a/1' }, { [SHARED]: 'a/2' }, /not the same file/],
    ['one of another host, of which nobody can tell', { [SHARED]: 'a/1' }, { [SHARED]: 'b/2' }, undefined],
    ['one of which nothing is said', { [SHARED]: 'a/1' }, {}, undefined],
    ['one whose host begins alike', { [SHARED]: 'a/1' }, { [SHARED]: 'ab/2' }, undefined],
  ])('%s', (_, here, there, expected) => {
    const found = compare(here, there).join('; ');
    if (expected) expect(found).toMatch(expected);
    else expect(found).toBe('');
  });
});
