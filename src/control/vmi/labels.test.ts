import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import { NODE_NAME_LABEL, TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import { guestOf } from './guests.fixture.ts';
import { labelChanges } from './labels.ts';

const runner = (node: string) => ({ node, nodeUID: `uid-${node}`, podUID: `pod-${node}` });
const held = (node: string, more: object = {}) => ({ rightToRun: { epoch: 1, holder: runner(node), ...more } });
const NODE = (node: string) => ({ [NODE_NAME_LABEL]: node });
const TARGET = (node: string) => ({ [TARGET_NODE_LABEL]: node });
const moving = { migrationUid: 'move-1', targetNode: 'b' };

describe('labels by which agents find a guest', () => {
  it.each<readonly [string, VirtualMachineInstanceStatus, Record<string, string>, object]>([
    ['a guest without a node', { phase: 'Scheduling' }, {}, {}],
    ['a guest that was given to a node', { phase: 'Scheduled', nodeName: 'a' }, {}, NODE('a')],
    ['a guest that has its label', { phase: 'Scheduled', nodeName: 'a' }, NODE('a'), {}],
    ['a guest that runs', { phase: 'Running', nodeName: 'a', ...held('a') }, NODE('a'), {}],
    ['a guest that has moved', { phase: 'Running', nodeName: 'a', ...held('b') }, NODE('a'), NODE('b')],
    ['a guest that nobody holds any more', { phase: 'Failed', nodeName: 'a', rightToRun: { epoch: 2 } }, NODE('a'), {}],
    [
      'a guest that moves',
      { phase: 'Running', ...held('a'), migrationState: moving },
      { ...NODE('a'), ...TARGET('b') },
      {},
    ],
    [
      'a guest whose move is over, except for its successor',
      { phase: 'Running', ...held('a', { successor: runner('b') }), migrationState: { ...moving, completed: true } },
      { ...NODE('a'), ...TARGET('b') },
      {},
    ],
    [
      'a guest whose move is over',
      { phase: 'Running', ...held('b'), migrationState: { ...moving, completed: true } },
      { ...NODE('a'), ...TARGET('b') },
      { [NODE_NAME_LABEL]: 'b', [TARGET_NODE_LABEL]: null },
    ],
    [
      'a guest that nobody moves',
      { phase: 'Running', ...held('a') },
      { ...NODE('a'), ...TARGET('b') },
      { [TARGET_NODE_LABEL]: null },
    ],
  ])('%s', (_what, status, labels, expected) => {
    const guest = guestOf({}, status);
    expect(labelChanges({ ...guest, metadata: { ...guest.metadata, labels } })).toEqual(expected);
  });
});
