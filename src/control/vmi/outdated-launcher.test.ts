import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import { OUTDATED_LAUNCHER_LABEL } from '../../api/kubevirt/well-known.ts';
import { guestOf } from './guests.fixture.ts';
import { outdatedLabelChange } from './outdated-launcher.ts';

describe('the label of guests with an old launcher', () => {
  it.each<readonly [string, VirtualMachineInstanceStatus, boolean, object]>([
    ['a guest whose launcher nobody knows', { phase: 'Scheduling' }, false, {}],
    ['one in the current launcher', { launcherContainerImageVersion: 'launcher:2' }, false, {}],
    [
      'one in an old launcher',
      { launcherContainerImageVersion: 'launcher:1' },
      false,
      { [OUTDATED_LAUNCHER_LABEL]: '' },
    ],
    ['one that is labelled', { launcherContainerImageVersion: 'launcher:1' }, true, {}],
    ['one that was moved', { launcherContainerImageVersion: 'launcher:2' }, true, { [OUTDATED_LAUNCHER_LABEL]: null }],
    [
      'one that is over',
      { phase: 'Failed', launcherContainerImageVersion: 'launcher:1' },
      true,
      { [OUTDATED_LAUNCHER_LABEL]: null },
    ],
  ])('follows: %s', (_what, status, isLabelled, expected) => {
    const guest = guestOf({}, { phase: 'Running', ...status });
    const labels: Record<string, string> = isLabelled ? { [OUTDATED_LAUNCHER_LABEL]: '' } : {};
    expect(outdatedLabelChange({ ...guest, metadata: { ...guest.metadata, labels } }, 'launcher:2')).toEqual(expected);
  });
});
