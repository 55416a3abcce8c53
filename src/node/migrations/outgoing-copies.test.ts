import { expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import { NO_MIGRATION } from '../../hypervisor/migration.fixture.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Machines } from '../guests/machines.ts';
import type { Outcome } from '../guests/scene.ts';
import type { CopyRelays } from './copy-relays.ts';
import { newLeaving } from './leaving.ts';
import { OutgoingCopies } from './outgoing-copies.ts';
import type { Opened } from './peer.ts';

const runner = (name: string) => ({ node: `node-${name}`, nodeUID: `uid-${name}`, podUID: `pod-${name}` });
const UIDS = { sourceMigrationUID: 'move', targetMigrationUID: 'move' };
const ATTEMPT = { epoch: 1, source: runner('a'), target: runner('b'), ...UIDS };
const MACHINE = { spec: SMALL_MACHINE, ramBytes: 1024 };
const OPENED: Opened = { host: 'node-b', memoryPort: 100, isPostCopyPossible: false, machine: MACHINE };
const SECRETS = { memory: ['m'], disks: [] };

/** Opens a target that answers like this, for a copy that is to be plain, and begins where that may be. */
async function begun(opened: Opened, hasRelays = true, attempt: Attempt = ATTEMPT) {
  const asked: unknown[] = [];
  const led: unknown[] = [];
  const relays: Pick<CopyRelays, 'lead'> = {
    lead: async (...way) => {
      led.push(way);
      throw new Error('this is as far as it goes');
    },
  };
  const copies = new OutgoingCopies({
    env: testEnv(),
    peers: {
      exchange: async (_, request) => {
        asked.push(request);
        return { machine: 'inmigrate', letters: [], opened };
      },
    },
    credentials: { write: () => Promise.reject(new Error('nobody asked for any')) },
    ...(hasRelays ? { relays } : {}),
    cpus: 1,
    machines: {
      get: () => ({ run: { directory: '/runs/pod-a', instance: 'a' }, migration: NO_MIGRATION }) as unknown as Machine,
    } as unknown as Machines,
    describe: async () => ({ machine: MACHINE, copiedDisks: [], diskFiles: new Map() }),
    advance: () => undefined,
    enqueue: () => undefined,
    tell: () => undefined,
  });
  const leaving = newLeaving(attempt, { node: 'node-b', address: 'node-b', port: 7000 });
  const portRange = { first: 100, last: 199 };
  const migrationConfiguration = { disableTLS: true, allowPostCopy: true, portRange };
  const outcome = {
    podUID: 'pod-a',
    guest: { status: { migrationState: { migrationConfiguration } } },
  } as unknown as Outcome;
  await copies.open(outcome, leaving);
  if (leaving.opened) await copies.start(outcome, leaving);
  return { asked, led, leaving };
}

it('leads a copy that is not encrypted to where it is awaited, with the secrets of its target', async () => {
  const { asked, led, leaving } = await begun({ ...OPENED, secrets: SECRETS });
  expect(asked).toMatchObject([{ kind: 'open', method: { isEncrypted: false, allowsPostCopy: false } }]);
  expect(leaving.told?.channel).toMatchObject({ encrypted: false });
  expect(led).toEqual([[{ host: 'node-b', port: 100 }, SECRETS, '/runs/pod-a']]);
  expect(leaving.failure).toMatch(/this is as far as it goes/);
});

it.each([{}, { secrets: { memory: [], disks: ['d'] } }])(
  'begins no copy with a target that lets in anybody: %j',
  async (more) => {
    const { led, leaving } = await begun({ ...OPENED, ...more });
    expect(leaving.failure).toMatch(/did not say how it knows who comes/);
    expect(led).toEqual([]);
  },
);

it('encrypts what goes elsewhere whatever is said there, and names no ports of others', async () => {
  const across = { ...ATTEMPT, across: { targetEpoch: 2 } };
  const { asked } = await begun({ ...OPENED, secrets: SECRETS }, true, across);
  expect(asked).toMatchObject([{ kind: 'open', method: { isEncrypted: true } }]);
  expect(asked[0]).not.toHaveProperty('ports');
  expect((await begun({ ...OPENED, secrets: SECRETS })).asked[0]).toHaveProperty('ports');
});

it('sends no guest elsewhere but to where its target was said to be', async () => {
  const across = { ...ATTEMPT, across: { targetEpoch: 2 } };
  const credentials = { authorityPem: '', certificatePem: '', keyPem: '', peer: 'b' };
  const { led, leaving } = await begun({ ...OPENED, credentials, host: '10.9.9.9' }, true, across);
  expect(leaving.failure).toMatch(/waits at 10.9.9.9, and its agent was said to be at node-b/);
  expect(led).toEqual([]);
});

it('sends a guest to where a node of this cluster says that it waits for migrations', async () => {
  const { led } = await begun({ ...OPENED, secrets: SECRETS, host: '10.9.9.9' });
  expect(led).toMatchObject([[{ host: '10.9.9.9' }, SECRETS, '/runs/pod-a']]);
});

it('asks again where a target takes long to open, which has not said no', async () => {
  const env = testEnv();
  const copies = new OutgoingCopies({
    env,
    peers: { exchange: () => new Promise(() => undefined) },
    credentials: { write: () => Promise.reject(new Error('nobody asked for any')) },
    cpus: 1,
    machines: {} as unknown as Machines,
    describe: async () => ({ machine: MACHINE, copiedDisks: [], diskFiles: new Map() }),
    advance: () => undefined,
    enqueue: () => undefined,
    tell: () => undefined,
  });
  const leaving = newLeaving(ATTEMPT, { node: 'node-b', address: 'node-b', port: 7000 });
  for (let tries = 1; tries <= 5; tries++) {
    expect(leaving.failure).toBeUndefined();
    const opening = copies.open({ podUID: 'pod-a', guest: undefined } as unknown as Outcome, leaving);
    for (const timeMs of [20_000, 5000]) {
      await new Promise((resolve) => setImmediate(resolve));
      env.clock.advance(timeMs);
    }
    await opening;
    expect(leaving.openTries).toBe(tries);
  }
  expect(leaving.failure).toBe(
    'the target could not be made ready: the agent of node node-b has not answered: it took longer than 20000 ms',
  );
});

it('asks for encryption where it could not prove otherwise who it is', async () => {
  const { asked, leaving } = await begun({ ...OPENED, secrets: SECRETS }, false);
  expect(asked).toMatchObject([{ method: { isEncrypted: true } }]);
  // What a target answers that does as it likes is no proof.
  expect(leaving.failure).toMatch(/did not say how it knows who comes/);
});

it('adopts no copy that carries disks of which nothing is known: the guest would go without them', async () => {
  const place = { bus: 'virtio', at: 4 } as const;
  const mirror = { place, state: 'whole', copiedBytes: 1, totalBytes: 1, message: undefined } as const;
  const copies = new OutgoingCopies({
    env: testEnv(),
    peers: { exchange: () => Promise.reject(new Error('nobody is asked')) },
    credentials: { write: () => Promise.reject(new Error('nobody asked for any')) },
    cpus: 1,
    machines: {
      get: () => ({ migration: { ...NO_MIGRATION, mirrors: async () => [mirror] } }) as unknown as Machine,
    } as unknown as Machines,
    describe: async () => ({ machine: MACHINE, copiedDisks: [], diskFiles: new Map() }),
    advance: () => undefined,
    enqueue: () => undefined,
    tell: () => undefined,
  });
  const leaving = newLeaving(ATTEMPT, { node: 'node-b', address: '10.0.0.2', port: 7000 });
  await copies.adopt({ podUID: 'pod-a', guest: undefined } as unknown as Outcome, leaving);
  expect(leaving.copy).toBeUndefined();
  expect(leaving.failure).toMatch(/disks are being copied of which nothing is known/);
});
