import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything, EventStream } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { EvictionWebhooks } from '../support/eviction-webhooks.ts';
import { claim, probe, virtualMachine } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { conditionOf } from '../support/virtual-machines.ts';

/** `godwit drain` of nodes with real guests: what it says before, meanwhile and in the end, and what becomes of the guests. */

vi.setConfig({ testTimeout: 400_000, hookTimeout: 300_000 });

const NODES = ['node-1', 'node-2', 'node-3'];
const [DRAINED = '', OTHER = ''] = NODES;
/** How long anything may take that is under way, on a machine under load. */
const PATIENCE_MS = 120_000;
/** Nobody moves until somebody says so. */
const HELD = { parallelMigrationsPerCluster: 0 };
const LIMITS = { parallelMigrationsPerCluster: 2, parallelOutboundMigrationsPerNode: 2 };

/** The ten guests of the node that is drained. */
const MOVABLE = ['live-0', 'live-1', 'live-2', 'live-3', 'live-4', 'maybe-0', 'maybe-1'];
const STRATEGIES: ReadonlyMap<string, string> = new Map([
  ...MOVABLE.map((name) => [name, name.startsWith('live') ? 'LiveMigrate' : 'LiveMigrateIfPossible'] as const),
  ['plain', 'None'],
  ['fixed', 'LiveMigrateIfPossible'],
  ['managed', 'External'],
]);
/** Guests of another node that their users want moved. */
const BYSTANDERS = ['bystander-0', 'bystander-1'];

let guests: MovingGuests;
let webhooks: EvictionWebhooks;
let events: EventStream;

beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: NODES.length });
  webhooks = new EvictionWebhooks(guests.host.api);
  await guests.host.create(claim('fixed', 'local'));
  const others = BYSTANDERS.map((name) => [name, 'LiveMigrate'] as const);
  await createOn(DRAINED, STRATEGIES);
  await createOn(OTHER, new Map(others));
  events = await guests.watchMigrations();
});
afterAll(() => guests.stop());

/** Makes guests on a node; they can go to any other afterwards. */
async function createOn(node: string, strategies: ReadonlyMap<string, string>): Promise<void> {
  const { kubectl } = guests.host;
  const others = NODES.filter((other) => other !== node);
  await kubectl.ok(['cordon', ...others]);
  for (const [name, evictionStrategy] of strategies) {
    const source = { persistentVolumeClaim: { claimName: name } };
    const volumes = name === 'fixed' ? { volumes: [{ name: 'disk', source }] } : {};
    await guests.host.create(
      virtualMachine(name, probe({ tickMs: 100, graceSeconds: 5, evictionStrategy, ...volumes })),
    );
  }
  for (const name of strategies.keys()) {
    await guests.knows(name);
    expect((await guests.holder(name)).node).toBe(node);
    await eventually(async () => expect(conditionOf(await guests.host.guest(name), 'LiveMigratable')).toBeDefined());
  }
  await kubectl.ok(['uncordon', ...others]);
}

const isCordoned = async (node: string): Promise<boolean> =>
  (await guests.host.api.request('GET', `/api/v1/nodes/${node}`)).expect(200).json.spec.unschedulable === true;

const markOf = async (name: string): Promise<string | undefined> =>
  (await guests.host.guest(name)).status.evacuationNodeName;

const migrationsOf = async (name: string): Promise<Anything[]> =>
  (await guests.migrations()).filter(({ spec }) => spec.vmiName === name);

/** Waits until a guest need not leave any more, and nobody is about to move it. */
async function isLeftAlone(name: string): Promise<void> {
  await eventually(async () => expect(await markOf(name)).toBeUndefined(), PATIENCE_MS);
  await eventually(async () => expect(await migrationsOf(name)).toEqual([]), PATIENCE_MS);
}

/** Guests in the order in which their migrations got a place. */
function order(since: number): string[] {
  const found: string[] = [];
  for (const { object } of events.events.slice(since)) {
    const hasPlace = !['', 'Pending', 'Failed', undefined].includes(object.status?.phase);
    if (hasPlace && !found.includes(object.spec.vmiName)) found.push(object.spec.vmiName);
  }
  return found;
}

/** The most that moved at once. */
function most(since: number): number {
  const now = new Map<string, boolean>();
  let found = 0;
  for (const { type, object } of events.events.slice(since)) {
    const isMoving = ['PreparingTarget', 'TargetReady', 'Running'].includes(object.status?.phase);
    now.set(object.metadata.name, type !== 'DELETED' && isMoving);
    found = Math.max(found, [...now.values()].filter(Boolean).length);
  }
  return found;
}

describe('a dry run', () => {
  it('says what would become of each guest, and why, and changes nothing', async () => {
    const { code, stdout, stderr } = await guests.host.runCli('drain', DRAINED, '--dry-run');
    expect(stderr).toContain('would not become empty; nothing was changed');
    expect(code).toBe(1);
    for (const name of MOVABLE) expect(stdout).toMatch(new RegExp(`default/${name} .*would be moved`));
    expect(stdout).toMatch(/default\/plain .*would be shut down .*None/);
    expect(stdout).toMatch(/default\/fixed .*would be shut down .*cannot be live-migrated/);
    expect(stdout).toMatch(/default\/managed .*would stay .*External/);
    expect(await isCordoned(DRAINED)).toBe(false);
    for (const name of STRATEGIES.keys()) expect(await markOf(name)).toBeUndefined();
  });

  it('says where nobody finds room', async () => {
    const others = NODES.filter((node) => node !== DRAINED);
    await guests.host.kubectl.ok(['cordon', ...others]);
    const { stdout } = await guests.host.runCli('drain', DRAINED, '--dry-run');
    expect(stdout).toMatch(/default\/live-0 .*would stay .*no node takes it now: .*node-2/);
    await guests.host.kubectl.ok(['uncordon', ...others]);
  });

  it('of a node that is not there says so', async () => {
    const { code, stderr } = await guests.host.runCli('drain', 'node-9', '--dry-run');
    expect(code).toBe(1);
    expect(stderr).toContain("there is no node node-9; 'kubectl get nodes' lists all there are");
  });
});

describe('a drain', () => {
  it('keeps what is protected while no webhook is there, and says what may be missing', async () => {
    await guests.configure(HELD);
    await webhooks.whileDown(async () => {
      const drain = guests.host.startCli('drain', OTHER);
      await drain.printed(
        'default/bystander-0: Waiting, its disruption budget keeps it, and nobody moves it: is the eviction webhook there?',
      );
      for (const name of BYSTANDERS) expect(await markOf(name)).toBeUndefined();
      drain.child.kill('SIGINT');
      expect((await drain.finished).code).toBe(130);
    });
    for (const name of BYSTANDERS) {
      expect((await guests.holder(name)).node).toBe(OTHER);
      expect(await guests.isWhole(name)).toHaveLength(1);
    }
    await guests.host.cli('uncordon', OTHER);
  });

  it('goes on once the webhooks are there again; stopped and taken back, it has moved nobody', async () => {
    let drain: ReturnType<typeof guests.host.startCli> | undefined;
    await webhooks.whileDown(async () => {
      drain = guests.host.startCli('drain', OTHER);
      await drain.printed('is the eviction webhook there?');
    });
    for (const name of BYSTANDERS) await eventually(async () => expect(await markOf(name)).toBe(OTHER), PATIENCE_MS);
    await drain?.printed('default/bystander-0: Waiting, its migration waits for its turn');
    drain?.child.kill('SIGINT');
    const finished = await drain?.finished;
    expect(finished?.code).toBe(130);
    expect(finished?.stderr).toContain(`${OTHER} stays cordoned`);
    expect(finished?.stderr).toContain(`'godwit uncordon ${OTHER}' (or 'kubectl uncordon ${OTHER}') takes it back`);
    expect(await isCordoned(OTHER)).toBe(true);
    expect(await guests.host.cli('uncordon', OTHER)).toBe(`node/${OTHER} uncordoned\n`);
    for (const name of BYSTANDERS) {
      await isLeftAlone(name);
      expect((await guests.holder(name)).node).toBe(OTHER);
    }
  });

  it('that is not done in time says how far it is', async () => {
    const { code, stderr } = await guests.host.runCli('drain', OTHER, '--timeout', '4s');
    expect(code).toBe(1);
    expect(stderr).toContain(`not done within 4s: 2 of 2 virtual machines left on ${OTHER}`);
    await guests.host.cli('uncordon', OTHER);
    for (const name of BYSTANDERS) await isLeftAlone(name);
  });

  it('of ten guests moves whom it may before all who only want to, within limits, and ends when the node is empty', async () => {
    await guests.configure(HELD);
    // Users wait for their turn: two of them for guests of the node.
    const wished = ['live-3', 'live-4'];
    for (const name of [...BYSTANDERS, ...wished]) {
      const migration = await guests.ask(name, { priority: 'user-triggered' });
      await guests.reaches(migration, 'Pending');
    }
    const drain = guests.host.startCli('drain', DRAINED);
    await drain.printed(`node/${DRAINED} cordoned`);
    for (const name of MOVABLE)
      await eventually(async () => {
        const [migration, ...more] = await migrationsOf(name);
        expect(more).toEqual([]);
        expect(migration?.status?.effectivePriority).toBe(100);
        const causes = migration.status.causes.map(({ cause }: Anything) => cause).toSorted();
        expect(causes).toEqual(wished.includes(name) ? ['APIEviction', 'User'] : ['APIEviction']);
      }, PATIENCE_MS);
    await drain.printed('default/managed: Blocked, its eviction strategy is External');
    await drain.printed('default/plain: Gone');
    await drain.printed('default/fixed: Gone');
    const since = events.events.length;
    await guests.configure(LIMITS);
    await eventually(async () => {
      for (const name of MOVABLE) expect(drain.output()).toContain(`default/${name}: Left, it runs on node-`);
    }, PATIENCE_MS);
    // Whoever manages it sees the mark, and ends it.
    expect(await markOf('managed')).toBe(DRAINED);
    await guests.host.cli('stop', 'managed');
    const { code, stdout } = await drain.finished;
    expect(code, drain.output()).toBe(0);
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(`node/${DRAINED} drained`);
    for (const name of MOVABLE) {
      expect((await guests.holder(name)).node).not.toBe(DRAINED);
      expect(await guests.isWhole(name)).toHaveLength(2);
    }
    // Theirs is the last turn: the drain does not wait for it.
    for (const name of BYSTANDERS)
      await eventually(async () => expect(await guests.isWhole(name)).toHaveLength(2), PATIENCE_MS);
    const first = order(since).slice(0, MOVABLE.length);
    expect(first.toSorted()).toEqual(MOVABLE.toSorted());
    expect(most(since)).toBeLessThanOrEqual(LIMITS.parallelMigrationsPerCluster);
    await guests.host.isSaidToBe('plain', 'Running');
    expect((await guests.holder('plain')).node).not.toBe(DRAINED);
  });

  it('of an empty node is over at once', async () => {
    expect(await guests.host.cli('drain', DRAINED, '--timeout', '1m')).toBe(
      `node/${DRAINED} cordoned\nnode/${DRAINED} drained\n`,
    );
    await guests.host.cli('uncordon', DRAINED);
  });

  it('says what to do about a guest that nothing moves', async () => {
    await guests.host.create(claim('stuck', 'local'));
    const source = { persistentVolumeClaim: { claimName: 'stuck' } };
    const spec = probe({
      tickMs: 100,
      evictionStrategy: 'LiveMigrate',
      volumes: [{ name: 'disk', source }],
    });
    await guests.host.create(virtualMachine('stuck', spec));
    await guests.knows('stuck');
    const { node } = await guests.holder('stuck');
    // Whoever else is there is not what is waited for.
    await guests.configure({ parallelMigrationsPerCluster: 10, parallelOutboundMigrationsPerNode: 10 });
    const { code, stderr } = await guests.host.runCli('drain', node, '--timeout', '2m');
    expect(code).toBe(1);
    expect(stderr).toContain(`${node} does not become empty by itself:`);
    expect(stderr).toMatch(/default\/stuck cannot be live-migrated: .*'godwit stop stuck -n default'/);
    expect(await guests.isWhole('stuck')).toHaveLength(1);
    expect(guests.host.assertNeverDoubled()).toBeGreaterThan(50);
  });
});
