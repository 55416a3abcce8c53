import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { SYNCHRONIZATION_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { meant, sideOf } from './side.ts';

const migration = (
  uid: string,
  phase: 'Failed' | 'Synchronizing' | '',
  isKept = false,
): VirtualMachineInstanceMigration => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceMigration',
  metadata: { uid, ...(isKept ? { finalizers: [SYNCHRONIZATION_FINALIZER] } : {}) },
  spec: { vmName: 'web', sendTo: { key: 'k', connectURL: 'x:1' } },
  status: { phase },
});

describe('the migration that a key means', () => {
  it.each([
    { name: 'none that nobody has looked at', of: [migration('a', '')], uid: undefined },
    { name: 'none that is over', of: [migration('a', 'Failed')], uid: undefined },
    { name: 'the one that has the key', of: [migration('a', 'Failed'), migration('b', 'Synchronizing')], uid: 'b' },
    {
      name: 'the one that has yet to be heard out',
      of: [migration('b', 'Synchronizing'), migration('c', 'Failed', true)],
      uid: 'c',
    },
    { name: 'one of two', of: [migration('b', 'Synchronizing'), migration('a', 'Synchronizing')], uid: 'a' },
  ])('is $name', ({ of, uid }) => {
    expect(meant(of)?.metadata.uid).toBe(uid);
  });
});

it('has a side unless it stays, or has both', () => {
  expect(sideOf({ spec: { vmName: 'web' } })).toBeUndefined();
  expect(sideOf({ spec: { receive: { key: 'k' } } })).toEqual({ role: 'target', key: 'k' });
  expect(sideOf({ spec: { sendTo: { key: 'k', connectURL: 'u' }, receive: { key: 'k' } } })).toBeUndefined();
});
