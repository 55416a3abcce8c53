import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { realFiles } from '../../src/env/real-files.ts';
import { realClock } from '../../src/env/real.ts';
import { bootImage } from '../../src/hypervisor/qemu/boot-sector.ts';
import { probeAccelerator, problemWith, type ProbeOptions } from '../../src/hypervisor/qemu/probe-accelerator.ts';
import { say } from '../support/say.ts';
import { UNPRIVILEGED, Workbench } from '../support/qemu.ts';

const buildScript = fileURLToPath(new URL('../../guest/accelerator/build.sh', import.meta.url));

let bench: Workbench;
beforeAll(async () => (bench = await Workbench.open()));
afterAll(() => bench.close());

function options(): ProbeOptions {
  const { hypervisor } = bench;
  const machineType = `pc-q35-${bench.version.major}.${bench.version.minor}`;
  return { clock: realClock, hypervisor, hostFiles: realFiles, user: UNPRIVILEGED, run: bench.newRun(), machineType };
}

describe('the guest that tries accelerators', () => {
  it('is what its source says', () => {
    expect(spawnSync(buildScript, [bench.directory], { encoding: 'utf8' })).toMatchObject({ status: 0 });
    const built = readFileSync(join(bench.directory, 'boot.bin'));
    expect(Buffer.from(bootImage().slice(0, 512)).equals(built)).toBe(true);
  });

  it('runs without an accelerator, so that its silence means something', async () => {
    expect(await problemWith('tcg', options())).toBeUndefined();
  });

  it('decides about KVM on this host', async () => {
    const { accelerator, reason } = await probeAccelerator(options());
    say(`${accelerator} is used here: ${reason}`);
    expect(reason).toMatch(accelerator === 'kvm' ? /^a guest ran on KVM$/ : /^KVM does not work: ./);
  });
});
