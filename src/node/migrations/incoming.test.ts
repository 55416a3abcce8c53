import { beforeEach, describe, expect, it } from 'vitest';
import { MIGRATION_PORTS } from '../../api/kubevirt/migration-configuration.ts';
import { testEnv } from '../../env/test.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import { NO_MIGRATION } from '../../hypervisor/migration.fixture.ts';
import type { MachineMigration } from '../../hypervisor/migration.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import { FakeHost } from '../guests/fake-hypervisor.fixture.ts';
import { Machines, type SeenMachine } from '../guests/machines.ts';
import { JournalFile } from '../journal/journal-file.ts';
import { MemoryFile } from '../journal/memory-file.fixture.ts';
import { Incoming } from './incoming.ts';
import type { PeerRequest } from './peer.ts';

/** What is answered to those who ask, and to whom not. */

const runner = (name: string) => ({ node: name, nodeUID: `uid-${name}`, podUID: `pod-${name}` });
const ATTEMPT: Attempt = {
  epoch: 3,
  source: runner('a'),
  target: runner('b'),
  sourceMigrationUID: 'm',
  targetMigrationUID: 'm',
};
const LOOK: PeerRequest = { kind: 'look', attempt: ATTEMPT };
const OPEN: PeerRequest = {
  kind: 'open',
  attempt: ATTEMPT,
  method: { allowsPostCopy: false, isEncrypted: true },
  copiedDisks: [],
};

const env = testEnv();
let host: FakeHost;
let journal: JournalFile;
let incoming: Incoming;
let advanced: string[];

beforeEach(async () => {
  host = new FakeHost();
  advanced = [];
  journal = await JournalFile.open(new MemoryFile(), env.log);
  await journal.append({ vm: 'vm', podUID: 'pod-b', entry: { kind: 'receiving', attempt: ATTEMPT } });
  const machines = new Machines({
    hypervisor: host.hypervisor(),
    runOf: (podUID) => ({ directory: `/runs/${podUID}`, instance: podUID }),
    onNews: () => undefined,
    onEnd: async () => undefined,
    log: env.log,
  });
  await machines.start('pod-b', SMALL_MACHINE);
  const [machine] = host.machines;
  if (machine) machine.status = 'incoming';
  incoming = new Incoming({
    env,
    journal,
    machines,
    describe: async () => ({
      machine: { spec: SMALL_MACHINE, ramBytes: 1 },
      copiedDisks: [{ bus: 'virtio', at: 4 }],
      diskFiles: new Map(),
    }),
    credentials: { issue: () => Promise.reject(new Error('nobody asked for any')) },
    host: '127.0.0.1',
    portsOf: () => undefined,
    sourceKeysOf: () => [],
    advance: async (podUID) => void advanced.push(podUID),
  });
});

describe('a target', () => {
  it('says to its source how its machine is', async () => {
    expect(await incoming.answer({ node: 'a' }, LOOK)).toEqual({ machine: 'inmigrate', letters: [] });
  });

  it('says nothing to others', async () => {
    for (const request of [LOOK, OPEN]) {
      await expect(incoming.answer({ node: 'c' }, request)).rejects.toMatchObject({ code: 403 });
    }
  });

  it.each<[string, Partial<Attempt>]>([
    ['another epoch', { epoch: 4 }],
    ['another migration', { targetMigrationUID: 'n' }],
    ['another pod', { target: { ...runner('b'), podUID: 'pod-x' } }],
    ['another source pod', { source: { ...runner('a'), podUID: 'pod-x' } }],
  ])('knows nothing of %s', async (_, other) => {
    const request: PeerRequest = { kind: 'look', attempt: { ...ATTEMPT, ...other } };
    await expect(incoming.answer({ node: 'a' }, request)).rejects.toMatchObject({ code: 409 });
  });

  it('hears a letter once, and acts on it before it answers', async () => {
    const letter: PeerRequest = { kind: 'letter', message: { kind: 'grant', attempt: ATTEMPT }, stoppedForMs: 20 };
    await incoming.answer({ node: 'a' }, letter);
    await incoming.answer({ node: 'a' }, letter);
    expect(advanced).toEqual(['pod-b', 'pod-b']);
    expect(incoming.inbox('pod-b', ATTEMPT, undefined)).toEqual([{ kind: 'grant', attempt: ATTEMPT }]);
  });

  it('says what became of it, also when it was started anew', async () => {
    await journal.append({ vm: 'vm', podUID: 'pod-b', entry: { kind: 'taken', attempt: ATTEMPT } });
    expect((await incoming.answer({ node: 'a' }, LOOK)).letters).toEqual([{ kind: 'taken', attempt: ATTEMPT }]);
  });

  it.each<[whether: string, isPostCopy: true | undefined, seen: SeenMachine, isFollowed: boolean]>([
    ['waits', undefined, { fact: 'running', migration: 'postcopy-active' }, true],
    ['may wait, since it was sent ahead and its machine says nothing,', true, { fact: 'unknown' }, true],
    ['may wait, since its machine last spoke before that,', true, { fact: 'unknown', migration: 'active' }, true],
    [
      'waits no more, since its machine said so before it fell silent,',
      true,
      { fact: 'unknown', migration: 'completed' },
      false,
    ],
    ['does not wait, though its machine says nothing,', undefined, { fact: 'unknown' }, false],
    ['waits no more', true, { fact: 'running', migration: 'completed' }, false],
    ['waited when it ended, as far as anybody knows,', true, { fact: 'dead' }, true],
    ['waited when it ended, as it said last,', undefined, { fact: 'dead', migration: 'postcopy-active' }, true],
    ['had all of it when it ended', true, { fact: 'dead', migration: 'completed' }, false],
    ['has ended, and did not wait', undefined, { fact: 'dead' }, false],
    ['is not asked any more, and does not wait', true, { fact: 'running' }, false],
  ])('whose guest %s for its memory', (_, isPostCopy, seen, isFollowed) => {
    const holding = { kind: 'holding', epoch: 4, mustContinue: false, isCompleted: false } as const;
    const standing = { ...holding, ...(isPostCopy ? { isPostCopy } : {}) };
    expect(incoming.facts('pod-b', standing, seen).isFollowed).toBe(isFollowed);
  });

  it('says that it has refused', async () => {
    await journal.append({ vm: 'vm', podUID: 'pod-b', entry: { kind: 'refused', attempt: ATTEMPT } });
    expect((await incoming.answer({ node: 'a' }, LOOK)).letters).toEqual([{ kind: 'refused', attempt: ATTEMPT }]);
  });

  it('lets nobody write to disks that are not to be copied', async () => {
    const places = [{ bus: 'virtio', at: 4 } as const, { bus: 'virtio', at: 5 } as const];
    for (const copiedDisks of [[], places])
      await expect(incoming.answer({ node: 'a' }, { ...OPEN, copiedDisks })).rejects.toMatchObject({
        code: 409,
        message: expect.stringContaining('the disks to copy'),
      });
  });

  it('says why its machine cannot wait', async () => {
    const request: PeerRequest = { ...OPEN, copiedDisks: [{ bus: 'virtio', at: 4 }] };
    await expect(incoming.answer({ node: 'a' }, request)).rejects.toMatchObject({
      code: 409,
      message: /nobody asked for any/,
    });
  });

  it('never waits without knowing for whom', async () => {
    const method = { allowsPostCopy: false, isEncrypted: false };
    const request: PeerRequest = { ...OPEN, method, copiedDisks: [{ bus: 'virtio', at: 4 }] };
    await expect(incoming.answer({ node: 'a' }, request)).rejects.toMatchObject({
      code: 409,
      message: /is not encrypted/,
    });
  });
});

describe('a node with a network for migrations', () => {
  const across: Attempt = { ...ATTEMPT, across: { targetEpoch: 4 } };

  it.each([
    ['of this cluster there', ATTEMPT, '10.1.0.2'],
    ['of others at its own address, which is all that they know', across, '10.0.0.2'],
  ])('waits for guests %s, from the first and again', async (_, attempt, host) => {
    const journal = await JournalFile.open(new MemoryFile(), env.log);
    await journal.append({ vm: 'vm', podUID: 'pod-b', entry: { kind: 'receiving', attempt } });
    const waits: string[] = [];
    const migration: MachineMigration = {
      ...NO_MIGRATION,
      pausePostCopy: async () => undefined,
      listen: async (options) => {
        waits.push(options.host);
        return { memoryPort: 7, disksPort: undefined };
      },
      listenAgain: async (range) => {
        waits.push(range.host);
        return 8;
      },
    };
    const target = new Incoming({
      env,
      journal,
      machines: {
        look: async () => ({ fact: 'inmigrate' }),
        get: () => ({ migration, ended: new Promise(() => undefined) }),
      } as unknown as Machines,
      describe: async () => ({ machine: { spec: SMALL_MACHINE, ramBytes: 1 }, copiedDisks: [], diskFiles: new Map() }),
      credentials: {
        issue: async (_podUID, use) => ({
          used: await use({ directory: '/tls', peer: 'a' }),
          source: { authorityPem: '', certificatePem: '', keyPem: '', peer: 'b' },
        }),
      },
      host: '10.0.0.2',
      migrationHost: '10.1.0.2',
      portsOf: () => undefined,
      sourceKeysOf: () => ['key'],
      advance: async () => undefined,
    });
    const caller = { node: 'a', key: 'key' };
    const { opened } = await target.answer(caller, { ...OPEN, attempt } as PeerRequest);
    expect(opened?.host).toBe(host);
    const { listening } = await target.answer(caller, { kind: 'listen-again', attempt });
    expect(listening).toEqual({ host, port: 8 });
    expect(waits).toEqual([host, host]);
  });
});

describe('a target whose agent was started anew', () => {
  it.each([
    ['the range of ports that its migration was begun with', { first: 50_000, last: 50_001 }, [50_000, 50_001]],
    ['ports of the usual range where none was set', undefined, [MIGRATION_PORTS.first, MIGRATION_PORTS.last]],
  ])('waits again for the rest of a guest on %s', async (_, ports, range) => {
    await journal.append({ vm: 'vm', podUID: 'pod-b', entry: { kind: 'taken', attempt: ATTEMPT } });
    const waits: number[][] = [];
    const migration: MachineMigration = {
      ...NO_MIGRATION,
      pausePostCopy: async () => undefined,
      listenAgain: async ({ firstPort, lastPort }) => {
        waits.push([firstPort, lastPort]);
        return 8;
      },
    };
    const target = new Incoming({
      env,
      journal,
      machines: { get: () => ({ migration }) } as unknown as Machines,
      describe: () => Promise.reject(new Error('nobody asks how it is')),
      credentials: { issue: () => Promise.reject(new Error('nobody asks for any')) },
      host: '10.0.0.2',
      portsOf: (podUID) => (podUID === 'pod-b' ? ports : undefined),
      sourceKeysOf: () => [],
      advance: async () => undefined,
    });
    const { listening } = await target.answer({ node: 'a' }, { kind: 'listen-again', attempt: ATTEMPT });
    expect(listening).toEqual({ host: '10.0.0.2', port: 8 });
    expect(waits).toEqual([range]);
  });
});
