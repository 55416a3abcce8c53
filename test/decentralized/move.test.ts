import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe, virtualMachine } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { oneLife } from '../support/one-life.ts';

/** `godwit move` of a real guest to another namespace, and back to the machine that was kept there. */

vi.setConfig({ testTimeout: 400_000, hookTimeout: 300_000 });

const PATIENCE_MS = 120_000;

let guests: MovingGuests;

beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: 2 });
  await guests.host.kubectl.ok(['create', 'namespace', 'outlet']);
  await guests.host.create(claim('disk', 'local'));
  const volumes = [{ name: 'disk', source: { persistentVolumeClaim: { claimName: 'disk' } } }];
  await guests.host.create(virtualMachine('web', probe({ tickMs: 100, graceSeconds: 5, volumes })));
  await guests.knows('web');
});
afterAll(() => guests.stop());

const find = async (namespace: string, plural: string): Promise<Anything> => {
  const path = `/apis/kubevirt.io/v1/namespaces/${namespace}/${plural}/web`;
  const answer = await guests.host.api.request('GET', path);
  return answer.status === 404 ? undefined : answer.expect(200).json;
};

/** The guest runs in a namespace, is the one that was started, and was never in two machines. */
async function runsIn(namespace: string): Promise<void> {
  await eventually(async () => {
    const guest = await find(namespace, 'virtualmachineinstances');
    expect(guest?.status?.phase, JSON.stringify(guest?.status)).toBe('Running');
    const log = guests.host.logs().get(guest.status.rightToRun.holder.podUID);
    expect(log).toContain(guests.bootOf('web'));
  }, PATIENCE_MS);
  oneLife(guests.bootOf('web'), guests.host.logs());
}

it('moves a guest with its disk to another namespace, and back', async () => {
  const { host } = guests;
  const forecast = await host.cli('move', 'web', '-n', 'default', '--to-namespace', 'outlet', '--dry-run');
  expect(forecast).toMatch(/^PersistentVolumeClaim +outlet\/disk +would be created +blank/m);
  expect(await find('outlet', 'virtualmachines')).toBeUndefined();

  const go = (): Promise<string> => host.cli('move', 'web', '-n', 'default', '--to-namespace', 'outlet');
  // Two who ask for the same in the same instant: the guest moves once, and both are told the same.
  for (const told of await Promise.all([go(), go()])) expect(told).toContain('the guest of web runs in outlet/web');
  await runsIn('outlet');
  const moved = await find('outlet', 'virtualmachines');
  await eventually(async () => {
    const kept = { spec: { runStrategy: 'Halted' }, status: { rightToRun: { grantedAway: true } } };
    expect(await find('default', 'virtualmachines')).toMatchObject(kept);
    expect(await find('outlet', 'virtualmachines')).toMatchObject({ spec: { runStrategy: 'Always' } });
  }, PATIENCE_MS);
  const { uuid } = (await find('outlet', 'virtualmachineinstances')).spec.domain.firmware;
  expect(moved.spec.template.spec.domain.firmware.uuid).toBe(uuid);

  expect(await go()).toContain('the guest of web runs in outlet/web');

  const back = await host.cli('move', 'web', '-n', 'outlet', '--to-namespace', 'default');
  expect(back).toContain('the guest of web runs in default/web');
  await runsIn('default');
  expect((await find('default', 'virtualmachineinstances')).spec.domain.firmware.uuid).toBe(uuid);
});

it.each<[readonly string[], number, RegExp]>([
  [['web'], 2, /say where to: --to-namespace NS/],
  [['web', '--to-namespace', 'default'], 2, /web is in default already; 'godwit migrate web'/],
  [['web', '--to-namespace', 'Out_let'], 2, /--to-namespace Out_let: /],
  [['web', '--to-namespace', 'outlet', '--name', 'Web!'], 2, /--name Web!: /],
  [
    ['web', '--to-namespace', 'outlet', '--connect-url', 'not here'],
    2,
    /--connect-url not here: .*must be a host and a port/,
  ],
  [['web', '--to-context', 'north'], 1, /there is no context "north"; there are /],
  [['wub', '--to-namespace', 'outlet'], 1, /there is no virtual machine wub in default; 'kubectl get vm -n default'/],
  [
    ['web', '--to-namespace', 'nowhere'],
    1,
    /nothing was changed:\n  there is no namespace nowhere .*\n    kubectl create namespace/,
  ],
  [['web', '--to-namespace', 'outlet', '--map-network', 'blue'], 2, /as A=B/],
])('is told what is wrong with %j', async (args, exitCode, pattern) => {
  const { code, stderr, stdout } = await guests.host.runCli('move', ...args);
  expect([code, stderr]).toEqual([exitCode, expect.stringMatching(pattern)]);
  expect(stdout).toBe('');
});
