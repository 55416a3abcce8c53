import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Running, startCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { probe } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { say } from '../support/say.ts';
import { SmallDisk } from '../support/small-disk.ts';

/** A guest whose own disk has no room where it is to go stays where it is. */

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const MEBIBYTE = 2 ** 20;
const [HOME, SMALL] = ['node-1', 'small'];
const LABELS = { pace: 'slow' };

let guests: MovingGuests;
let disk: SmallDisk | undefined;
let agent: Running | undefined;

beforeAll(async () => {
  disk = await SmallDisk.make(64, true);
  if (!disk) return;
  guests = await MovingGuests.start({ nodes: 1 });
  const volumes = [{ name: 'own', source: { emptyDisk: { capacity: '32Mi' } } }];
  // Its disk takes far longer to copy than it takes to see that this has begun.
  await guests.policy('paced', LABELS, { bandwidthPerMigration: '64Ki' });
  await guests.create('guest', probe({ tickMs: 10, arguments: 'mib=4 write=1 blocks=4096', volumes }), LABELS);
  const { directory } = guests.host.godwit;
  const options = {
    name: SMALL,
    'data-dir': join(disk.directory, 'node'),
    'bootstrap-kubeconfig': join(guests.host.nodesDirectory, 'bootstrap-kubeconfig'),
    images: join(directory, 'images'),
    shared: join(directory, 'shared'),
  };
  const args = Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]);
  const inside = disk;
  agent = startCli(['agent', ...args], {}, (command, given) => inside.wrap(command, given));
  await agent.printed('works for');
  await guests.host.nodesAreReady(2);
});
afterAll(async () => {
  if (!disk) return;
  agent?.child.kill('SIGKILL');
  disk.remove();
  await guests.stop();
});

describe('a node whose disk is full', () => {
  it('takes no guest whose disk it has no room for: it stays, whole, and the migration says why', async () => {
    if (!disk) return;
    // More than there will be room for: it writes whenever it speaks, and is not kept from that by being asked.
    await eventually(async () => expect((await guests.host.lives('guest')).count).toBeGreaterThan(800), 120_000);
    const migration = await guests.ask('guest');
    await guests.reaches(migration, 'Running');
    disk.fill(MEBIBYTE);
    const { status } = await guests.fails(migration);
    say(`without room for its disk: ${status.migrationState.failureReason}`);
    expect((await guests.holder('guest')).node).toBe(HOME);
    expect(await guests.isWhole('guest')).toHaveLength(1);
    expect(await guests.host.ask('guest', 'disk')).toMatch(/ bad=0\b/);
  });
});
