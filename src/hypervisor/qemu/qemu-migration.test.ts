import { describe, expect, it } from 'vitest';
import type { ListenOptions, MirrorOptions, SendOptions } from '../migration.ts';
import { FakeQemu } from './fake-qemu.fixture.ts';

const DISK = { bus: 'virtio', at: 4 } as const;
const TLS = { directory: '/tls', peer: 'node-a' };
const LISTEN: ListenOptions = {
  host: '10.0.0.1',
  firstPort: 100,
  lastPort: 102,
  tls: undefined,
  disks: [],
  allowsPostCopy: false,
  channels: undefined,
};
const SEND: SendOptions = {
  target: { host: '10.0.0.2', port: 100 },
  tls: undefined,
  limits: { bandwidthBytesPerSecond: 1000, downtimeMs: 30 },
  allowsPostCopy: false,
  allowsAutoConverge: false,
  channels: undefined,
};
const SETTINGS = ['object-del', 'object-add', 'migrate-set-capabilities', 'migrate-set-parameters'];

/** A QEMU that says yes to these, and to all settings. */
function agreeing(...names: readonly string[]): FakeQemu {
  const qemu = new FakeQemu();
  for (const name of [...SETTINGS, ...names]) qemu.answers.set(name, () => ({}));
  return qemu;
}

function told(qemu: FakeQemu, wanted: string): unknown[] {
  return qemu.commands.filter(([name]) => name === wanted).map(([, args]) => args);
}

/** The capabilities that are on. */
function on(qemu: FakeQemu): unknown {
  const [args] = told(qemu, 'migrate-set-capabilities') as { capabilities: { capability: string; state: boolean }[] }[];
  return args?.capabilities.filter(({ state }) => state).map(({ capability }) => capability);
}

describe('a target', () => {
  it('listens on the first free port, its disks on another', async () => {
    const qemu = agreeing('block-export-add');
    const inUse = (port: unknown) => new Error(`Failed to bind to ${String(port)}: Address already in use`);
    qemu.answers.set('nbd-server-start', (args) => {
      const { port } = (args['addr'] as { data: { port: string } }).data;
      return port === '100' ? inUse(port) : {};
    });
    qemu.answers.set('migrate-incoming', ({ uri }) => (uri === 'tcp:10.0.0.1:102' ? {} : inUse(uri)));
    const { migration } = await qemu.connect();
    expect(await migration.listen({ ...LISTEN, disks: [DISK] })).toEqual({ memoryPort: 102, disksPort: 101 });
    expect(told(qemu, 'block-export-add')).toEqual([
      { type: 'nbd', id: 'export-disk-virtio-4', 'node-name': 'disk-virtio-4', name: 'disk-virtio-4', writable: true },
    ]);
    expect(on(qemu)).toEqual(['events', 'return-path', 'late-block-activate']);
    expect(told(qemu, 'migrate-set-parameters')).toEqual([{ 'tls-creds': '' }]);
  });

  it('listens on sockets of its own, for its agent alone', async () => {
    const qemu = agreeing('nbd-server-start', 'block-export-add', 'migrate-incoming');
    const { migration } = await qemu.connect();
    const { memory, disks } = await migration.listenLocally({ disks: [DISK], channels: undefined });
    expect(memory.path).toMatch(/^\/.*\/incoming-memory\.sock$/);
    expect(disks?.path).toMatch(/^\/.*\/incoming-disks\.sock$/);
    expect(told(qemu, 'nbd-server-start')).toEqual([{ addr: { type: 'unix', data: { path: 'incoming-disks.sock' } } }]);
    expect(told(qemu, 'migrate-incoming')).toEqual([{ uri: 'unix:incoming-memory.sock' }]);
    expect(on(qemu)).toEqual(['events', 'return-path', 'late-block-activate']);
  });

  it('serves disks to its agent alone, where that is asked for, under TLS as ever', async () => {
    const qemu = agreeing('nbd-server-start', 'block-export-add', 'migrate-incoming');
    const { migration } = await qemu.connect();
    const listening = await migration.listen({ ...LISTEN, tls: TLS, disks: [DISK], servesDisksLocally: true });
    expect(listening).toEqual({
      memoryPort: 100,
      disksPort: undefined,
      disks: { path: expect.stringMatching(/\/incoming-disks\.sock$/) as string },
    });
    expect(told(qemu, 'nbd-server-start')).toEqual([
      {
        addr: { type: 'unix', data: { path: 'incoming-disks.sock' } },
        'tls-creds': 'migration-tls',
        'tls-authz': 'migration-peer',
      },
    ]);
  });

  it('lets a disk be filled that its guest can only read', async () => {
    const qemu = agreeing('nbd-server-start', 'block-export-add', 'migrate-incoming', 'blockdev-reopen');
    const node = (name: string, drv: string, size: number) => ({
      'node-name': name,
      drv,
      ro: true,
      file: '../../pods/1/init.iso',
      cache: { direct: true },
      image: { 'virtual-size': size },
    });
    const nodes = [node('disk-sata-1', 'raw', 512), node('disk-sata-1-file', 'file', 1024)];
    qemu.answers.set('query-named-block-nodes', () => [...nodes, { ...node('disk-virtio-4', 'raw', 1), ro: false }]);
    const { migration, disks } = await qemu.connect();
    const drive = { bus: 'sata', at: 1 } as const;
    await migration.listenLocally({ disks: [DISK, drive], channels: undefined });
    const shared = { cache: { direct: true, 'no-flush': false }, 'read-only': false, discard: 'unmap' };
    expect(told(qemu, 'blockdev-reopen')).toEqual([
      {
        options: [
          { driver: 'file', 'node-name': 'disk-sata-1-file', filename: '../../pods/1/init.iso', ...shared },
          { driver: 'raw', 'node-name': 'disk-sata-1', file: 'disk-sata-1-file', size: 512, ...shared },
        ],
      },
    ]);
    expect(told(qemu, 'block-export-add')).toHaveLength(2);
    expect([...(await disks.sizes())]).toEqual([
      ['sata 1', 512],
      ['virtio 4', 1],
    ]);
  });

  it('stops serving disks where it cannot listen', async () => {
    const qemu = agreeing('nbd-server-start', 'nbd-server-stop', 'block-export-add');
    qemu.answers.set('query-block-exports', () => [{ id: 'export-disk-virtio-4' }]);
    qemu.answers.set('migrate-incoming', () => new Error('Permission denied'));
    const { migration } = await qemu.connect();
    await expect(migration.listen({ ...LISTEN, disks: [DISK] })).rejects.toMatchObject({ code: 'Refused' });
    expect(told(qemu, 'nbd-server-stop')).toHaveLength(1);
  });

  it('lets in nobody but its source', async () => {
    const qemu = agreeing('migrate-incoming');
    qemu.answers.set('object-del', () => new Error('object not found'));
    const { migration } = await qemu.connect();
    await migration.listen({ ...LISTEN, tls: TLS });
    expect(told(qemu, 'object-add')).toEqual([
      { 'qom-type': 'tls-creds-x509', id: 'migration-tls', endpoint: 'server', dir: '/tls', 'verify-peer': true },
      { 'qom-type': 'authz-simple', id: 'migration-peer', identity: 'CN=node-a' },
    ]);
    expect(told(qemu, 'migrate-set-parameters')).toEqual([
      { 'tls-creds': 'migration-tls', 'tls-authz': 'migration-peer' },
    ]);
    await expect(migration.listen({ ...LISTEN, tls: { ...TLS, peer: 'a,O=b' } })).rejects.toThrow('the other side');
  });

  it('finds its credentials also where it could not get to from above', async () => {
    const qemu = agreeing('migrate-incoming');
    const { migration } = await qemu.connect();
    await migration.listen({ ...LISTEN, tls: { ...TLS, directory: '/run/tls/one' } });
    expect(told(qemu, 'object-add')[0]).toMatchObject({ dir: '../tls/one' });
  });

  it('is mended past a monitor that hangs', async () => {
    const qemu = agreeing('oob migrate-recover', 'oob migrate-pause');
    const { migration } = await qemu.connect();
    await migration.pausePostCopy();
    expect(await migration.listenAgain({ ...LISTEN, host: '::1' })).toBe(100);
    expect(told(qemu, 'oob migrate-recover')).toEqual([{ uri: 'tcp:[::1]:100' }]);
  });

  it('closes its disks only where they are open', async () => {
    const qemu = agreeing('nbd-server-stop');
    const exports = [{ id: 'export-disk-virtio-4' }];
    qemu.answers.set('query-block-exports', () => exports.splice(0));
    const { migration } = await qemu.connect();
    for (let time = 0; time < 2; time++) await migration.closeDisks();
    expect(told(qemu, 'nbd-server-stop')).toHaveLength(1);
  });
});

describe('a source', () => {
  it.each<[what: string, options: Partial<SendOptions>, capabilities: string[], parameters: object]>([
    ['plain', {}, [], { 'max-bandwidth': 1000, 'downtime-limit': 30, 'tls-creds': '', 'tls-hostname': '' }],
    [
      'unlimited',
      { limits: { bandwidthBytesPerSecond: 0, downtimeMs: 5 } },
      [],
      { 'max-bandwidth': Number.MAX_SAFE_INTEGER, 'max-postcopy-bandwidth': Number.MAX_SAFE_INTEGER },
    ],
    ['with TLS', { tls: TLS }, [], { 'tls-creds': 'migration-tls', 'tls-hostname': 'node-a' }],
    ['that may be slowed down', { allowsAutoConverge: true }, ['auto-converge'], {}],
    ['that may go first', { allowsPostCopy: true }, ['postcopy-ram'], { 'max-postcopy-bandwidth': 1000 }],
    [
      'over channels',
      { channels: { count: 4, compression: 'zstd' } },
      ['multifd'],
      { 'multifd-channels': 4, 'multifd-compression': 'zstd' },
    ],
  ])('is told all of it before it starts: %s', async (_, options, capabilities, parameters) => {
    const qemu = agreeing('migrate');
    qemu.answers.set('query-memory-size-summary', () => ({ 'base-memory': 4096 }));
    const { migration } = await qemu.connect();
    await migration.start({ ...SEND, ...options });
    const always = ['events', 'return-path', 'pause-before-switchover'];
    expect(new Set(on(qemu) as string[])).toEqual(new Set([...always, ...capabilities]));
    expect(told(qemu, 'migrate-set-parameters')).toMatchObject([parameters]);
    expect(told(qemu, 'migrate')).toEqual([{ uri: 'tcp:10.0.0.2:100' }]);
  });

  it('that cannot meet its target is called back, and one that hangs is cut off', async () => {
    const qemu = agreeing('migrate', 'migrate_cancel');
    qemu.answers.set('query-memory-size-summary', () => ({ 'base-memory': 4096 }));
    qemu.migration = { status: 'setup' };
    const { migration } = await qemu.connect();
    const unreached = migration.start({ ...SEND, tls: TLS });
    await expect(unreached).rejects.toMatchObject({ code: 'Unreachable' });
    expect([told(qemu, 'migrate_cancel').length, qemu.programs]).toEqual([1, []]);
    qemu.isHung = true;
    qemu.onProgram = () => {
      qemu.isHung = false;
      qemu.migration = { status: 'failed' };
    };
    await expect(migration.start({ ...SEND, tls: TLS })).rejects.toThrow('does not shake hands');
    expect(qemu.programs).toEqual([['ss', '--kill', '--tcp', '--numeric', 'dst', '10.0.0.2', 'dport', '=', ':100']]);
  });

  it.each<[what: string, options: Partial<SendOptions>]>([
    ['post-copy over channels', { allowsPostCopy: true, channels: { count: 2, compression: 'none' } }],
    ['no channels', { channels: { count: 0, compression: 'none' } }],
    ['a limit below nothing', { limits: { bandwidthBytesPerSecond: -1, downtimeMs: 1 } }],
    ['a limit that is no number', { limits: { bandwidthBytesPerSecond: 1, downtimeMs: Number.NaN } }],
    ['an address that is more than one', { target: { host: '10.0.0.2:1,to=9', port: 1 } }],
  ])('is not told what cannot be: %s', async (_, options) => {
    const qemu = agreeing('migrate');
    const { migration } = await qemu.connect();
    await expect(migration.start({ ...SEND, ...options })).rejects.toMatchObject({ code: 'Refused' });
    expect(told(qemu, 'migrate')).toEqual([]);
  });

  it.each([
    ['active', true],
    ['pre-switchover', true],
    ['postcopy-active', false],
    ['postcopy-paused', false],
  ])('that is %s can be called back: %s', async (status, isDone) => {
    const qemu = agreeing('migrate_cancel', 'oob yank');
    qemu.migration = { status };
    const { migration } = await qemu.connect();
    if (isDone) await migration.cancel();
    else await expect(migration.cancel()).rejects.toMatchObject({ code: 'Refused' });
    expect(told(qemu, 'migrate_cancel')).toHaveLength(isDone ? 1 : 0);
    expect(told(qemu, 'oob yank')).toEqual(isDone ? [{ instances: [{ type: 'migration' }] }] : []);
  });

  it('that has ended meanwhile need not be called back', async () => {
    const qemu = agreeing('migrate_cancel');
    qemu.answers.set('oob yank', () => new Error('Instance not found'));
    const { migration } = await qemu.connect();
    await migration.cancel();
    expect(told(qemu, 'migrate_cancel')).toHaveLength(1);
  });

  it('says how far it is, and in which state', async () => {
    const qemu = agreeing();
    qemu.migration = {
      status: 'failed',
      'error-desc': 'Broken pipe',
      'total-time': 9,
      'expected-downtime': 40,
      'cpu-throttle-percentage': 30,
      ram: {
        total: 100,
        remaining: 60,
        transferred: 50,
        mbps: 8,
        'dirty-pages-rate': 2,
        'page-size': 4096,
        'dirty-sync-count': 3,
        'postcopy-requests': 1,
      },
    };
    const { migration } = await qemu.connect();
    expect(await migration.progress()).toEqual({
      state: 'failed',
      message: 'Broken pipe',
      downtimeMs: 40,
      totalMs: 9,
      throttlePercent: 30,
      memory: {
        totalBytes: 100,
        remainingBytes: 60,
        transferredBytes: 50,
        bytesPerSecond: 1_000_000,
        dirtyBytesPerSecond: 8192,
        passes: 3,
        requestedPages: 1,
      },
    });
    qemu.migration = {};
    expect(await migration.progress()).toMatchObject({ state: 'none', memory: undefined });
    qemu.migration = { status: 'colo' };
    await expect(migration.progress()).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it('tells states, passes and mirrors, and nothing of what is not known', async () => {
    const qemu = new FakeQemu();
    const machine = await qemu.connect();
    const heard: unknown[] = [];
    machine.onEvent((event) => heard.push({ ...event, atMs: undefined }));
    qemu.tell('MIGRATION', { status: 'postcopy-recover-setup' });
    qemu.tell('MIGRATION', { status: 'colo' });
    qemu.tell('MIGRATION_PASS', { pass: 2 });
    qemu.tell('BLOCK_JOB_READY', { device: 'mirror-disk-virtio-4' });
    qemu.tell('BLOCK_JOB_READY', { device: 'backup' });
    expect(heard).toEqual([
      { kind: 'migration', state: 'postcopy-recover' },
      { kind: 'migration-pass', pass: 2 },
      { kind: 'mirror' },
    ]);
  });
});

describe('the mirrors of a source', () => {
  const NODES = ['disk-virtio-4', 'target-disk-virtio-4'];
  const OPTIONS: MirrorOptions = {
    target: { host: '10.0.0.2', port: 101 },
    tls: { ...TLS, peer: 'node-b' },
    disks: [DISK],
    bandwidthBytesPerSecond: 0,
  };

  /** A QEMU whose one mirror is in these states, one after the other. */
  function mirroring(statuses: readonly object[], sizes: readonly number[] = [8, 8]): FakeQemu {
    const qemu = agreeing('blockdev-add', 'blockdev-del', 'blockdev-mirror', 'block-job-cancel', 'job-dismiss');
    const left = [...statuses];
    qemu.status = 'finish-migrate';
    qemu.answers.set('query-named-block-nodes', () =>
      NODES.map((name, index) => ({ 'node-name': name, image: { 'virtual-size': sizes[index] } })),
    );
    const connected = NODES.map((name) => ({ type: 'block-node', 'node-name': name }));
    qemu.answers.set('oob query-yank', () => [...connected, { type: 'migration' }, { type: 'chardev', id: 'serial' }]);
    qemu.answers.set('oob yank', () => ({}));
    qemu.answers.set('query-jobs', () => {
      const status = left.length > 1 ? left.shift() : left[0];
      return [{ id: 'mirror-disk-virtio-4', 'current-progress': 4, 'total-progress': 8, ...status }, { id: 'other' }];
    });
    return qemu;
  }

  const order = (qemu: FakeQemu): string[] =>
    qemu.commands
      .map(([name]) => name)
      .filter((name) => ['oob yank', 'block-job-cancel', 'blockdev-del'].includes(name));

  it('begin with the right disk, over TLS', async () => {
    const qemu = mirroring([{ status: 'running' }]);
    const { migration } = await qemu.connect();
    await migration.startMirrors(OPTIONS);
    expect(told(qemu, 'blockdev-add')).toEqual([
      {
        driver: 'nbd',
        'node-name': 'target-disk-virtio-4',
        server: { type: 'inet', host: '10.0.0.2', port: '101' },
        export: 'disk-virtio-4',
        'open-timeout': 2,
        'tls-creds': 'migration-tls',
        'tls-hostname': 'node-b',
      },
    ]);
    expect(told(qemu, 'blockdev-mirror')).toMatchObject([{ sync: 'full', 'copy-mode': 'background', speed: 0 }]);
    const place = { place: DISK, copiedBytes: 4, totalBytes: 8 };
    expect(await migration.mirrors()).toEqual([{ ...place, state: 'copying', message: undefined }]);
  });

  it.each<[string, number, readonly number[], readonly number[]]>([
    ['share their limit by their sizes, and are whole together', 1000, [30, 10], [750, 250]],
    ['have no limit where there is none', 0, [30, 10], [0, 0]],
    ['have the least of limits where their share is less, for nothing would be none', 1, [10_000, 1], [1, 1]],
  ])('%s', async (_, bandwidthBytesPerSecond, sizes, speeds) => {
    const disks = [DISK, { bus: 'virtio', at: 5 } as const];
    const qemu = mirroring([{ status: 'running' }]);
    qemu.answers.set('query-named-block-nodes', () =>
      ['', 'target-'].flatMap((prefix) =>
        disks.map(({ at }, index) => ({
          'node-name': `${prefix}disk-virtio-${at}`,
          image: { 'virtual-size': sizes[index] },
        })),
      ),
    );
    const { migration } = await qemu.connect();
    await migration.startMirrors({ ...OPTIONS, disks, bandwidthBytesPerSecond });
    expect(told(qemu, 'blockdev-mirror')).toMatchObject(speeds.map((speed) => ({ speed })));
  });

  it('do not begin with a limit that is none', async () => {
    const qemu = mirroring([{ status: 'concluded' }]);
    const { migration } = await qemu.connect();
    const limited = { ...OPTIONS, bandwidthBytesPerSecond: -1 };
    await expect(migration.startMirrors(limited)).rejects.toMatchObject({ code: 'Refused' });
    expect(told(qemu, 'blockdev-add')).toEqual([]);
  });

  it('do not begin where sizes differ, and leave nothing', async () => {
    const qemu = mirroring([{ status: 'concluded' }], [8, 16]);
    const { migration } = await qemu.connect();
    await expect(migration.startMirrors(OPTIONS)).rejects.toThrow('8 bytes here, and 16 at the target');
    expect(told(qemu, 'blockdev-mirror')).toEqual([]);
    expect(told(qemu, 'blockdev-del')).toEqual([{ 'node-name': 'target-disk-virtio-4' }]);
  });

  it('end when they are whole, and wait until QEMU has said so', async () => {
    const qemu = mirroring([{ status: 'ready' }, { status: 'aborting' }, { status: 'concluded' }]);
    const { migration } = await qemu.connect();
    await migration.finishMirrors();
    expect(told(qemu, 'block-job-cancel')).toEqual([{ device: 'mirror-disk-virtio-4' }]);
    expect(told(qemu, 'job-dismiss')).toEqual([{ id: 'mirror-disk-virtio-4' }]);
    // A disk is closed only once nobody at the other end is waited for.
    expect(order(qemu)).toEqual(['block-job-cancel', 'oob yank', 'blockdev-del']);
  });

  it.each([
    ['not whole yet', [{ status: 'running' }]],
    ['no copy', [{ status: 'concluded', error: 'Input/output error' }]],
    ['lost at the very end', [{ status: 'ready' }, { status: 'concluded', error: 'Input/output error' }]],
  ])('do not end where one is %s', async (_, statuses) => {
    const qemu = mirroring(statuses);
    const { migration } = await qemu.connect();
    await expect(migration.finishMirrors()).rejects.toMatchObject({ code: 'Refused' });
    expect(told(qemu, 'job-dismiss')).toEqual([]);
  });

  it('are given up in any state', async () => {
    const qemu = mirroring([{ status: 'running' }, { status: 'concluded', error: 'cancelled' }]);
    qemu.answers.set('block-job-cancel', () => new Error('it has just ended'));
    const { migration } = await qemu.connect();
    await migration.dropMirrors();
    expect(told(qemu, 'block-job-cancel')).toEqual([{ device: 'mirror-disk-virtio-4', force: true }]);
    expect(told(qemu, 'blockdev-del')).toHaveLength(1);
    expect(order(qemu)).toEqual(['oob yank', 'block-job-cancel', 'oob yank', 'blockdev-del']);
    expect(told(qemu, 'oob yank')[0]).toEqual({
      instances: [{ type: 'block-node', 'node-name': 'target-disk-virtio-4' }],
    });
  });

  it('are given up also where their connections have just ended', async () => {
    const qemu = mirroring([{ status: 'concluded', error: 'Input/output error' }]);
    qemu.answers.set('oob yank', () => new Error('Instance not found'));
    const { migration } = await qemu.connect();
    await migration.dropMirrors();
    expect(told(qemu, 'blockdev-del')).toHaveLength(1);
  });
});
