import { describe, expect, it } from 'vitest';
import { FULL_MACHINE, SMALL_MACHINE } from '../machine.fixture.ts';
import type { MachineSpec } from '../machine.ts';
import { commandLine, SANDBOX } from '../qemu/command-line.ts';
import { checkArguments } from './checked-arguments.ts';

const SAFE = ['-S', '-sandbox', SANDBOX];

describe('the arguments that a launcher takes', () => {
  it.each<[string, MachineSpec]>([
    ['a small machine', SMALL_MACHINE],
    ['one with everything', { ...FULL_MACHINE, memoryRoom: { unitBytes: 2 ** 27, slots: 8, plugged: 2 } }],
    ['one that comes', { ...SMALL_MACHINE, incoming: { ramBytes: 33_562_624 } }],
  ])('are those of %s', (_, spec) => {
    const version = { major: 10, minor: 0, micro: 2 };
    checkArguments(commandLine(spec, { version, instance: 'a' }).arguments);
  });

  it.each([
    ['another program before it starts', [...SAFE, '-incoming', 'exec:sh'], '-incoming exec:sh'],
    ['code of their own', [...SAFE, '-plugin', 'file=evil.so'], '-plugin'],
    ['options that nobody sees', [...SAFE, '-readconfig', 'more'], '-readconfig'],
    ['a sandbox with holes', ['-sandbox', 'on,spawn=allow'], '-sandbox on,spawn=allow'],
    ['a second sandbox', [...SAFE, '-sandbox', 'off'], '-sandbox off'],
    ['no sandbox', ['-S'], 'without -sandbox'],
    ['another spelling', [...SAFE, '--plugin', 'x'], '--plugin'],
    ['a disk by its name alone', [...SAFE, '/disks/a.raw'], '/disks/a.raw'],
    ['no value', [...SAFE, '-name'], '-name'],
  ])('are not those that ask for %s', (_, args, named) => {
    expect(() => checkArguments(args)).toThrow(named);
  });
});
