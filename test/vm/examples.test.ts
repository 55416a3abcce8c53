import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { signsOfLife } from '../support/guests.ts';
import { someOf } from '../support/sample.ts';
import { conditionOf, VirtualMachines } from '../support/virtual-machines.ts';

/** The manifests of `examples/`, as somebody would try them. */

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => (host = await VirtualMachines.start({ nodes: 2, linux: true })));
afterAll(() => host.stop());

const applied: string[] = [];

async function apply(name: string): Promise<void> {
  const path = fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));
  await host.kubectl.ok(['apply', '-f', path]);
  applied.push(path);
}

describe('the examples', () => {
  it('vm.yaml is a machine that can move, with a disk and a network', async () => {
    await apply('vm.yaml');
    expect(await host.lives('guest')).toMatchObject({ memory: 'ok', disk: 'ok' });
    const guest = await host.guest('guest');
    expect(conditionOf(guest, 'LiveMigratable').status).toBe('True');
    await host.says(guest, /^cloud-init .*hostname=guest /m);
    await host.says(guest, /^network .*address=10\.0\.2\.15\/24/m);
    const address = await host.forwardOf('guest', 80);
    const text = await eventually(async () => (await fetch(`http://${address}/`)).text());
    expect(signsOfLife(text)[0]?.boot).toBe(host.signs(guest)[0]?.boot);
  });

  it('migration.yaml moves it', async () => {
    const path = fileURLToPath(new URL('../../examples/migration.yaml', import.meta.url));
    const before = await host.guest('guest');
    const [, name = ''] = /\/(\S+) created/.exec(await host.kubectl.ok(['create', '-f', path])) ?? [];
    await host.kubectl.ok(['wait', 'vmim', name, '--for=jsonpath={.status.phase}=Succeeded', '--timeout=50s']);
    // The node's name follows the record of who may run it.
    await eventually(async () => expect((await host.guest('guest')).status.nodeName).not.toBe(before.status.nodeName));
    expect(await host.lives('guest')).toMatchObject({ memory: 'ok', disk: 'ok' });
  });

  const some = someOf(4, 2);
  some('vmi.yaml is a guest on its own, from an image', async () => {
    await apply('vmi.yaml');
    expect(await host.lives('probe')).toMatchObject({ memory: 'ok', disk: 'ok' });
  });

  some('vm-instancetype.yaml is sized by what it refers to', async () => {
    await apply('vm-instancetype.yaml');
    expect(await host.lives('sized')).toMatchObject({ memory: 'ok', disk: 'ok' });
    const { spec } = await host.guest('sized');
    expect(spec.domain).toMatchObject({
      memory: { guest: '96Mi' },
      devices: { disks: [{ disk: { bus: 'virtio' } }] },
    });
  });

  some('vm-cloud-init.yaml reads what it was given', async () => {
    await apply('vm-cloud-init.yaml');
    await host.lives('configured');
    await host.says(await host.guest('configured'), /^cloud-init .*hostname=tern /m);
    const files = (await host.hear('configured', 'ls')).join('\n');
    expect(files).toMatch(/^file .*path=application\.properties /m);
    expect(files).toMatch(/^file .*path=token /m);
  });

  some('vm-container-disk.yaml starts from an image, and keeps what is on its other disk', async () => {
    await apply('vm-container-disk.yaml');
    expect(await host.lives('from-image')).toMatchObject({ memory: 'ok', disk: 'ok' });
  });

  it('go as they came', async () => {
    for (const path of applied) await host.kubectl.ok(['delete', '-f', path, '--timeout=60s']);
    await eventually(() => expect(host.qemus()).toEqual([]));
    expect(host.assertNeverDoubled()).toBeGreaterThan(10);
  });
});
