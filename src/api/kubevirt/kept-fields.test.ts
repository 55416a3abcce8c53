import { describe, expect, it } from 'vitest';
import { configurationWarnings, virtualMachineInstanceWarnings, virtualMachineWarnings } from './kept-fields.ts';
import { CONTAINER_DISK_MACHINE, objectsOf, PLACED_MACHINE } from './manifests.fixture.ts';
import type { VirtualMachine } from './virtual-machine.ts';

function warningsOf(manifest: string): string[] {
  return objectsOf(manifest).flatMap((object) => virtualMachineWarnings((object as VirtualMachine).spec));
}

describe('fields that are kept', () => {
  it('are nothing to warn of where all is acted on', () => {
    expect(warningsOf(CONTAINER_DISK_MACHINE)).toEqual([]);
  });
  it('are named one by one', () => {
    const fields = warningsOf(PLACED_MACHINE).map((warning) => warning.replace(/ (is kept|keeps the guest).*/, ''));
    expect(fields).toEqual([
      'spec.running is deprecated, please use spec.runStrategy instead.',
      'spec.dataVolumeTemplates',
      'spec.template.spec.accessCredentials',
      'spec.template.spec.domain.cpu.dedicatedCpuPlacement',
      'spec.template.spec.domain.cpu.numa',
      'spec.template.spec.domain.devices.gpus',
      'spec.template.spec.domain.devices.tpm',
      'spec.template.spec.domain.devices.watchdog',
      'spec.template.spec.domain.features.hyperv',
      'spec.template.spec.domain.memory.hugepages',
      'spec.template.spec.readinessProbe',
      'spec.template.spec.domain.firmware.bootloader.efi',
    ]);
  });
  it('are said in so many words', () => {
    const spec = { domain: { devices: {}, launchSecurity: {} } };
    expect(virtualMachineInstanceWarnings(spec)).toEqual([
      'spec.domain.launchSecurity is kept, but nothing acts on it here',
    ]);
  });
  it('are said of the cluster as well', () => {
    const migrations = { network: 'fast', allowPostCopy: true, unsafeMigrationOverride: false };
    expect(configurationWarnings({ migrations }, 'spec.configuration')).toEqual([
      'spec.configuration.migrations.network is kept, but nothing acts on it here',
    ]);
  });
  it('are told once, where they also keep the guest from starting', () => {
    const spec = {
      domain: { devices: { disks: [{ name: 'a' }] } },
      volumes: [
        { name: 'a', sysprep: {} },
        { name: 'b', sysprep: {} },
      ],
    };
    expect(virtualMachineInstanceWarnings(spec)).toEqual([
      'spec.volumes[1].sysprep is kept, but nothing acts on it here',
      'spec.volumes[0].sysprep keeps the guest from starting: there are no such volumes here',
    ]);
  });
  it('are not missed when they are off or empty', () => {
    const spec = {
      accessCredentials: [],
      domain: { devices: { autoattachVSOCK: false, gpus: [] }, cpu: { dedicatedCpuPlacement: false } },
    };
    expect(virtualMachineInstanceWarnings(spec)).toEqual([]);
  });
});
