import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { realHost } from './real-host.ts';

describe('the real host', () => {
  it('says what it is', async () => {
    const identity = await realHost.identity();
    expect(identity).toMatchObject({
      operatingSystem: 'linux',
      architecture: expect.stringMatching(/^(amd64|arm64)$/),
      bootID: expect.stringMatching(/^[0-9a-f-]{36}$/),
      osImage: expect.stringMatching(/./),
      kernelVersion: expect.stringMatching(/^\d+\./),
    });
    expect(identity.cpus).toBeGreaterThan(0);
    expect(identity.memoryBytes).toBeGreaterThan(2 ** 20);
    expect(identity.addresses).not.toContain('127.0.0.1');
  });

  it('says how much is left', async () => {
    const { memoryAvailableBytes, disk, processes } = await realHost.usage(tmpdir());
    expect(memoryAvailableBytes).toBeGreaterThan(0);
    expect(disk.bytes).toBeGreaterThan(disk.availableBytes);
    expect(processes.running).toBeGreaterThan(0);
    expect(processes.max).toBeGreaterThan(processes.running);
    await expect(realHost.usage('/no/such/path')).rejects.toThrow('ENOENT');
  });

  it('knows what can be opened', async () => {
    expect(await realHost.canOpen('/dev/null')).toBe(true);
    expect(await realHost.canOpen('/dev/no-such-device')).toBe(false);
  });
});
