import type { HostFacts, HostIdentity, HostUsage } from '../../src/env/ports.ts';
import type { NodeProfile } from '../../src/node/registration/node-object.ts';

const GIBIBYTE = 2 ** 30;

/** A host that is short of nothing. */
export const PLENTY: HostUsage = {
  memoryAvailableBytes: GIBIBYTE,
  disk: { bytes: 100 * GIBIBYTE, availableBytes: 50 * GIBIBYTE, inodes: 1000, freeInodes: 500 },
  processes: { running: 100, max: 32768 },
};

/** A host that is what the test says. */
export class TestHost implements HostFacts {
  usageNow: HostUsage | Error | Promise<HostUsage> = PLENTY;
  asked = 0;

  async identity(): Promise<HostIdentity> {
    return {
      operatingSystem: 'linux',
      architecture: 'amd64',
      hostname: 'host',
      osImage: 'Test Linux 1',
      kernelVersion: '6.1.0',
      machineID: 'machine',
      systemUUID: '',
      bootID: 'boot',
      cpus: 4,
      memoryBytes: 8 * GIBIBYTE,
      addresses: ['10.0.0.1'],
    };
  }

  async usage(): Promise<HostUsage> {
    this.asked++;
    if (this.usageNow instanceof Error) throw this.usageNow;
    return this.usageNow;
  }

  async canOpen(path: string): Promise<boolean> {
    return path === '/dev/net/tun';
  }
}

export const PROFILE: NodeProfile = {
  name: 'n1',
  version: '0.1.0',
  accelerator: 'tcg',
  capabilities: {
    version: '7.2.1',
    cpuModels: ['Nehalem'],
    cpuFeatures: ['sse4.1', '-odd-'],
    cpuVendor: 'AMD',
    hostModel: { name: 'Nehalem', missingFeatures: ['aes'] },
    machineTypes: ['q35'],
  },
  localStoragePath: '/data/volumes',
  addresses: [
    { type: 'InternalIP', address: '10.0.0.1' },
    { type: 'InternalIP', address: '10.0.0.2' },
    { type: 'Hostname', address: 'n1' },
  ],
};
