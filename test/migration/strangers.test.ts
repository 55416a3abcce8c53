import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { probe } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { IS_PAIRED, sample } from '../support/sample.ts';
import { say } from '../support/say.ts';
import { Strangers } from '../support/strangers.ts';

/** Copies that are encrypted, and copies that are not: in both nobody comes in who was not let in. */

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const NODES = ['node-1', 'node-2'];
const PLAIN = { disableTLS: true };
/** Of this cluster alone: others of this host must not be visited. */
const PORTS = { first: 24_500, last: 24_519 };

let guests: MovingGuests;
beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: NODES.length });
  await guests.configure({ portRange: PORTS });
  await guests.policy('plain', { way: 'plain' }, PLAIN);
  await guests.policy('packed', { way: 'packed' }, { ...PLAIN, experimental: { compression: 'zstd' } });
  await guests.policy('hasty', { way: 'hasty' }, { ...PLAIN, allowPostCopy: true });
  // About two seconds of copying.
  await guests.policy('slow', { way: 'slow' }, { ...PLAIN, bandwidthPerMigration: '12Mi' });
});
afterAll(() => guests.stop());

/** A guest with a disk of its own, which is copied, too. */
async function create(name: string, way: string): Promise<void> {
  const volumes = [{ name: 'own', source: { emptyDisk: { capacity: '16Mi' } } }];
  const work = 'mib=24 hz=200 rate=4 write=20';
  await guests.create(name, probe({ memory: '48Mi', arguments: work, volumes }), { way });
}

const channelOf = ({ status }: Anything): Anything => status.migrationState.channel;

describe('strangers on the ports of a copy', () => {
  it.each([
    ['is encrypted', 'tls'],
    // Pairs always are: the wish of one side is not the other's.
    ...(IS_PAIRED ? [] : [['is not', 'plain']]),
  ])('hear nothing and break nothing where it %s', async (_, way) => {
    const name = `visited-${way}`;
    await create(name, way);
    const strangers = await Strangers.come([PORTS.first, PORTS.first + 1, PORTS.first + 2]);
    const migration = await guests.move(name);
    const { accepted, heard } = await strangers.leave();
    say(`strangers of a copy that goes by ${way}: ${JSON.stringify(Object.fromEntries(accepted))}`);
    expect(channelOf(migration).encrypted).toBe(way === 'tls');
    expect(accepted.size).toBeGreaterThan(0);
    expect(heard).toBe('');
    expect(await guests.host.ask(name, 'disk')).toMatch(/ bad=0\b/);
    await guests.remove(name);
  });
});

describe('a copy that need not be encrypted', () => {
  it('goes over several channels, in order', async () => {
    await create('packed', 'packed');
    const migration = await guests.move('packed');
    expect(channelOf(migration)).toEqual({ encrypted: IS_PAIRED, multifdChannels: 2, compression: 'zstd' });
    await guests.move('packed');
    await guests.remove('packed');
  });

  // Pairs always are encrypted.
  if (!IS_PAIRED)
    it('is never post-copy where it is not, and says so', async () => {
      await create('hasty', 'hasty');
      const { status } = await guests.move('hasty');
      expect(status.migrationState).toMatchObject({ mode: 'PreCopy', channel: { encrypted: false } });
      expect(status.migrationState.decisions).toContainEqual(
        expect.objectContaining({ decision: 'forgo-post-copy', reason: 'NotEncrypted' }),
      );
      await guests.remove('hasty');
    });

  it.each(sample(['source', 'target'] as const, 1))(
    'ends with the agent of its %s, and the guest goes on; the next one moves it',
    async (side) => {
      await create('broken', 'slow');
      const migration = await guests.ask('broken');
      const sides = await guests.sides('broken');
      await guests.noted(sides.source, ({ kind }) => kind === 'reserved');
      await eventually(async () => {
        const { progress } = (await guests.host.guest('broken')).status.migrationState;
        expect(progress?.transferredBytes).toBeGreaterThan(0);
      }, 60_000);
      await guests.host.killAgent(sides[side].node);
      const { status } = await guests.fails(migration);
      say(`a plain copy whose agent at the ${side} was killed: ${status.migrationState.failureReason}`);
      expect(await guests.isWhole('broken')).toHaveLength(1);
      await guests.host.nodesAreReady(NODES.length);
      await guests.move('broken');
      await guests.remove('broken');
    },
  );
});
