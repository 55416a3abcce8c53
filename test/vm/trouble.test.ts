import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { probe, virtualMachine } from '../support/guest-manifests.ts';
import { probeGuest } from '../support/guests.ts';
import { say } from '../support/say.ts';
import { conditionOf, VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => (host = await VirtualMachines.start({ nodes: 2 })));
afterAll(() => host.stop());

/** Whether it went well. */
function shell(command: string): boolean {
  return spawnSync('sh', ['-c', command], { stdio: 'ignore' }).status === 0;
}

describe('a guest that fits nowhere', () => {
  it.each([
    ['too large', { memory: '100Ti' }, /0\/2 nodes are available.*[Ii]nsufficient memory/],
    ['too picky', { nodeSelector: { moon: 'full' } }, /0\/2 nodes are available.*node affinity\/selector/],
  ])('says why: %s', async (what, options, pattern) => {
    const name = what.replace(' ', '-');
    await host.create(virtualMachine(name, probe(options)));
    await host.isSaidToBe(name, 'ErrorUnschedulable');
    expect(conditionOf(await host.guest(name), 'PodScheduled')).toMatchObject({
      status: 'False',
      reason: 'Unschedulable',
      message: expect.stringMatching(pattern) as string,
    });
    await host.told(name, pattern);
  });

  it('runs as soon as there is a place', async () => {
    await host.kubectl.ok('label node node-2 moon=full');
    await host.lives('too-picky');
    expect((await host.guest('too-picky')).status.nodeName).toBe('node-2');
  });
});

describe('a guest that cannot start', () => {
  it.each([
    [
      'by the word of its agent',
      'pc-q35-rhel9.4.0',
      /spec\.domain\.machine\.type: pc-q35-rhel9\.4\.0 is not supported/,
    ],
    ['by the word of QEMU', 'pc-q35-99.9', /QEMU did not start: .*unsupported machine type/],
  ])('has its machine say why: %s', async (_, machineType, pattern) => {
    const name = machineType.replaceAll('.', '-');
    await host.create(virtualMachine(name, probe({ machineType })));
    await host.isSaidToBe(name, 'CrashLoopBackOff');
    await eventually(async () =>
      expect(conditionOf(await host.machine(name), 'Failure')).toMatchObject({
        status: 'True',
        reason: 'CrashLoopBackOff',
        message: expect.stringMatching(pattern) as string,
      }),
    );
    await host.kubectl.ok(`delete vm ${name}`);
  });
});

describe('a guest whose disk another one has', () => {
  it('names the volume, and runs once the other one has let go', async () => {
    const directory = mkdtempSync('/tmp/gw-disputed-');
    chmodSync(directory, 0o777);
    const source = { hostDisk: { path: join(directory, 'disk.img'), type: 'DiskOrCreate', capacity: '16Mi' } };
    const volumes = [{ name: 'ledger', source }];
    const nodeSelector = { 'kubernetes.io/hostname': 'node-1' };
    await host.create(virtualMachine('owner', probe({ volumes, nodeSelector })));
    await host.lives('owner');
    await host.create(virtualMachine('rival', probe({ volumes, nodeSelector })));
    await eventually(
      async () =>
        expect(conditionOf(await host.machine('rival'), 'Failure')?.message).toMatch(
          /volume ledger: its disk .*disk\.img is in use by another process/,
        ),
      60_000,
    );
    await host.lives('owner');
    await host.cli('stop', 'owner');
    await host.isSaidToBe('owner', 'Stopped');
    // By itself it would be tried again, but later and later.
    await host.cli('stop', 'rival');
    await host.isSaidToBe('rival', 'Stopped');
    await host.cli('start', 'rival');
    await host.lives('rival');
    await host.cli('stop', 'rival');
    await host.isSaidToBe('rival', 'Stopped');
    rmSync(directory, { recursive: true });
  });
});

describe('a guest whose image is missing', () => {
  it('says which, and runs as soon as it was imported', async () => {
    const kernelImage = 'godwit/late:1';
    await host.create(virtualMachine('imageless', probe({ kernelImage })));
    await eventually(async () => {
      const { status } = await host.machine('imageless');
      expect(['ErrImagePull', 'ImagePullBackOff']).toContain(status?.printableStatus);
      expect(JSON.stringify((await host.guest('imageless')).status.conditions)).toContain('godwit/late:1');
    }, 60_000);
    await host.told('imageless', /godwit\/late:1/);
    const directory = mkdtempSync('/tmp/gw-late-');
    await host.importImage(kernelImage, '--kernel', probeGuest(directory));
    rmSync(directory, { recursive: true });
    await host.lives('imageless');
  });
});

describe('a guest whose disk is on a file system that is full', () => {
  it('is held, says why, and goes on without a loss once there is room', async () => {
    const directory = mkdtempSync('/tmp/gw-full-');
    const isMounted = shell(`mount -t tmpfs -o size=4m,mode=0777 tmpfs ${directory}`);
    if (!isMounted) {
      say('left out: a full disk needs a file system of its own, which only root can mount');
      rmSync(directory, { recursive: true });
      return;
    }
    try {
      chmodSync(directory, 0o777);
      const ballast = join(directory, 'ballast');
      const source = { hostDisk: { path: join(directory, 'disk.img'), type: 'DiskOrCreate', capacity: '16Mi' } };
      const volumes = [{ name: 'data', source }];
      await host.create(virtualMachine('cramped', probe({ arguments: 'write=1 blocks=4000', volumes })));
      const { boot } = await host.lives('cramped');
      const { bavail, bsize } = statfsSync(directory);
      writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 64 * 1024)));
      await host.isSaidToBe('cramped', 'Paused');
      expect(conditionOf(await host.guest('cramped'), 'Paused')).toMatchObject({ reason: 'PausedIOError' });
      shell(`mount -o remount,size=64m ${directory}`);
      rmSync(ballast);
      await host.cli('unpause', 'cramped');
      const sign = await host.lives('cramped');
      expect([sign.boot, sign.disk]).toEqual([boot, 'ok']);
      expect(await host.ask('cramped', 'disk')).toMatch(/disk=ok/);
    } finally {
      await host.delete('VirtualMachine', 'cramped');
      await host.isGone('cramped');
      shell(`umount ${directory}`);
      rmSync(directory, { recursive: true });
    }
  });
});

describe('a pod that is no guest', () => {
  it('stays pending on a node of ours, and is told why', async () => {
    await host.kubectl.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'stranger' },
      spec: { nodeName: 'node-1', containers: [{ name: 'main', image: 'nginx' }] },
    });
    await eventually(async () => {
      const { status } = await host.kubectl.json('get pod stranger');
      expect(status.phase).toBe('Pending');
      expect(JSON.stringify(status)).toMatch(/virtual machines|launcher/i);
    });
    await host.kubectl.ok('delete pod stranger --timeout=30s');
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(host.assertNeverDoubled()).toBeGreaterThan(10));
});
