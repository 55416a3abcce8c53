import { describe, expect, it } from 'vitest';
import { isAcross, sidesOf } from './migration-sides.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';

const guest = (uid: string, source: string | undefined, target: string | undefined): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'web', uid },
  spec: { domain: { devices: {} } },
  status: {
    migrationState: {
      ...(source === undefined ? {} : { sourceState: { virtualMachineInstanceUID: source } }),
      ...(target === undefined ? {} : { targetState: { virtualMachineInstanceUID: target } }),
    },
  },
});

describe("a guest's object stands for", () => {
  it.each<[string, source: string | undefined, target: string | undefined, isSource: boolean, isTarget: boolean]>([
    ['both sides of a migration that has no halves', undefined, undefined, true, true],
    ['both sides of two halves that are of it', 'one', 'one', true, true],
    ['the source of what goes to another', 'one', 'other', true, false],
    ['the target of what comes from another', 'other', 'one', false, true],
    ['no side of what is between two others', 'other', 'third', false, false],
  ])('%s', (_, source, target, isSource, isTarget) => {
    expect(sidesOf(guest('one', source, target))).toEqual({ isSource, isTarget });
    expect(isAcross(guest('one', source, target))).toBe(!isSource || !isTarget);
  });
});
