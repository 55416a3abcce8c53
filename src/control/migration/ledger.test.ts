import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { JsonObject } from '../../api/meta.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { usageOf } from '../../migration/slots/ledger.ts';
import { parseLedger } from '../../migration/slots/ledger-text.ts';
import type { SlotHolder, SlotRequest } from '../../migration/slots/request.ts';
import type { SlotRules } from '../../migration/slots/slot-book.ts';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances,
} from '../../kube/kubevirt-resources.ts';
import type { ControlContext } from '../context.ts';
import { ControlScene, NAMESPACE } from '../control.fixture.ts';
import { Ledger } from './ledger.ts';
import { configMaps, LEDGER_NAME } from './ledger-object.ts';
import { slotRules } from './ledger-rules.ts';

const RULES = slotRules(undefined);
const rulesOf = (perCluster: number, limitsVersion = '1', outboundPerNode = 100): SlotRules => ({
  ...RULES,
  limits: { perCluster, outboundPerNode, inboundPerNode: 2 },
  limitsVersion,
});

/** Called whenever a leader is told anything. */
let onTold = (): void => undefined;

/** One that gives slots, and what it was heard to say. */
class Leader {
  readonly told: string[] = [];
  /** Those that it lets start. */
  readonly started = new Map<string, SlotHolder>();
  rules = rulesOf(2);
  ledger!: Ledger;

  /** Called at each start: then it knows nothing any more. */
  readonly make = ({ env, client }: ControlContext): Ledger => {
    const onChange = (holder: SlotHolder): void => {
      const standing = this.ledger.standing(holder.uid) ?? 'nothing';
      this.told.push(`${holder.members[0]?.name} ${standing}`);
      if (standing === 'committed') this.started.set(holder.uid, holder);
      onTold();
    };
    return (this.ledger = new Ledger({ env, client, rules: () => this.rules, onChange }));
  };
}

const leader = new Leader();
const rival = new Leader();
const scene = new ControlScene(leader.make, rival.make);

beforeAll(async () => {
  await scene.start();
  await scene.stopControllers();
});
afterAll(() => scene.stop());

/** Each test begins with an empty cluster, and two leaders that know nothing. */
beforeEach(async () => {
  leader.rules = rival.rules = rulesOf(2);
  await scene.startControllers();
  leader.told.length = rival.told.length = scene.writes.length = 0;
  for (const { started } of [leader, rival]) started.clear();
  onTold = () => undefined;
});

afterEach(async () => {
  await scene.stopControllers();
  for (const { metadata } of await scene.list(migrations)) await scene.delete(migrations, metadata.name ?? '');
  const { items } = await scene.client.list(configMaps, { namespace: SYSTEM_NAMESPACE }, scene.signal);
  if (items.some(({ metadata }) => metadata.name === LEDGER_NAME))
    await scene.client.delete(configMaps, SYSTEM_NAMESPACE, LEDGER_NAME, scene.signal);
});

async function migration(name: string, phase: MigrationPhase = 'Pending'): Promise<SlotRequest> {
  const created = await scene.create<VirtualMachineInstanceMigration>(migrations, {
    metadata: { name },
    spec: { vmiName: name },
  });
  await become(name, phase);
  return requestOf(created);
}

function requestOf({ metadata }: VirtualMachineInstanceMigration): SlotRequest {
  const { name = '', uid = '' } = metadata;
  return {
    uid,
    kind: 'local',
    members: [{ namespace: NAMESPACE, name, uid }],
    sourceNode: 'node-a',
    targetNode: undefined,
    peer: undefined,
    priority: 0,
    deadlineMs: undefined,
    createdMs: Number(/\d+$/.exec(name)?.[0] ?? 0),
  };
}

const become = (name: string, phase: MigrationPhase): Promise<void> =>
  scene.patch(migrations, name, { status: { phase } }, 'status');

async function stored(): Promise<ReturnType<typeof parseLedger>> {
  const { data } = await scene.client.get(configMaps, SYSTEM_NAMESPACE, LEDGER_NAME, scene.signal);
  return parseLedger(data ?? {});
}

const holders = async (): Promise<string[]> =>
  [...(await stored()).holders.values()].map(({ members, state }) => `${members[0]?.name} ${state}`);

/** Somebody writes what is no business of theirs. */
const putBack = (body: { data: unknown }): Promise<unknown> =>
  scene.client.patch(
    configMaps,
    SYSTEM_NAMESPACE,
    LEDGER_NAME,
    { type: 'merge', body: body as JsonObject },
    scene.signal,
  );

const ledgerWrites = (): string[] => scene.writes.filter((write) => write.includes('/configmaps'));

describe('the ledger', () => {
  it('gives slots to the best of all that want one when it opens, in one write', async () => {
    const requests = await Promise.all(['m1', 'm2', 'm3'].map((name) => migration(name)));
    requests.forEach((request, index) => leader.ledger.want({ ...request, priority: index * 20 }));
    await scene.settle();
    expect(leader.told).toEqual([]);
    leader.ledger.open();
    await scene.until(() => expect(leader.told).toEqual(['m3 reserved', 'm2 reserved']));
    expect(await holders()).toEqual(['m3 reserved', 'm2 reserved']);
    expect(ledgerWrites()).toHaveLength(2);
  });

  it('commits where the target node has room, and gives all slots back where it has not', async () => {
    leader.rules = rulesOf(3);
    leader.ledger.open();
    const all = await Promise.all(['m1', 'm2', 'm3'].map((name) => migration(name)));
    for (const request of all) leader.ledger.want(request);
    await scene.until(async () => expect(await holders()).toHaveLength(3));
    for (const request of all) leader.ledger.want({ ...request, targetNode: 'node-b' });
    await scene.until(async () => expect(await holders()).toEqual(['m1 committed', 'm2 committed']));
    await become('m1', 'Succeeded');
    leader.ledger.ended(all[0]?.uid ?? '');
    await scene.until(async () => expect(await holders()).toEqual(['m2 committed', 'm3 committed']));
    expect(leader.told.slice(-3)).toEqual(['m3 nothing', 'm1 nothing', 'm3 committed']);
  });

  it('releases nothing on the word of its controller alone', async () => {
    leader.ledger.open();
    const [first, second, third] = [await migration('m1'), await migration('m2'), await migration('m3')];
    for (const request of [first, second, third]) leader.ledger.want(request);
    await scene.until(async () => expect(await holders()).toHaveLength(2));
    leader.ledger.ended(first.uid);
    await scene.pass(5000);
    expect(await holders()).toEqual(['m1 reserved', 'm2 reserved']);
    await become('m1', 'Failed');
    leader.ledger.ended(first.uid);
    await scene.until(async () => expect(await holders()).toEqual(['m2 reserved', 'm3 reserved']));
  });

  it('releases what the server was seen to say has ended, without asking it again', async () => {
    leader.ledger.open();
    const [first, second] = [await migration('m1'), await migration('m2')];
    for (const request of [first, second]) leader.ledger.want(request);
    await scene.until(async () => expect(await holders()).toHaveLength(2));
    // Were it asked, it would say otherwise.
    leader.ledger.over(first.uid);
    await scene.until(async () => expect(await holders()).toEqual(['m2 reserved']));
  });

  it('writes down together what comes one upon the other, where there are many', async () => {
    leader.rules = rulesOf(100);
    leader.ledger.open();
    const first = await migration('m1');
    const want = (index: number): void => {
      const uid = `many-${index}`;
      leader.ledger.want({ ...first, uid, members: [{ namespace: NAMESPACE, name: uid, uid }], createdMs: index });
    };
    for (let index = 0; index < 50; index++) want(index);
    await scene.until(async () => expect(await holders()).toHaveLength(50));
    const writes = ledgerWrites().length;
    for (let index = 50; index < 60; index++) {
      want(index);
      await scene.pass(10, 10);
    }
    await scene.until(async () => expect(await holders()).toHaveLength(60));
    expect(ledgerWrites().length - writes).toBeLessThanOrEqual(4);
  });

  it('finds out by itself, in the end, that one which nobody stands up for is over', async () => {
    leader.ledger.open();
    const request = await migration('m1');
    leader.ledger.want(request);
    await scene.until(async () => expect(await holders()).toHaveLength(1));
    leader.ledger.ended(request.uid);
    await scene.settle();
    await scene.delete(migrations, 'm1');
    await scene.pass(40_000, 5000);
    expect(await holders()).toEqual([]);
  });

  it('takes one of the same name for another one', async () => {
    leader.ledger.open();
    const request = await migration('m1');
    leader.ledger.want(request);
    await scene.until(async () => expect(await holders()).toHaveLength(1));
    await scene.delete(migrations, 'm1');
    await migration('m1');
    leader.ledger.ended(request.uid);
    await scene.until(async () => expect(await holders()).toEqual([]));
  });

  it('keeps the slots of a pair until both halves are over', async () => {
    leader.ledger.open();
    const [source, target] = [await migration('m1'), await migration('m2')];
    leader.ledger.want({ ...source, members: [...source.members, ...target.members] });
    await scene.until(async () => expect(await holders()).toEqual(['m1 reserved']));
    await become('m1', 'Failed');
    leader.ledger.over(source.uid);
    await scene.pass(2000);
    expect(await holders()).toEqual(['m1 reserved']);
    await become('m2', 'Failed');
    leader.ledger.over(source.uid);
    await scene.until(async () => expect(await holders()).toEqual([]));
  });

  it('gives nothing while a limit is zero, and goes on when it no longer is', async () => {
    leader.rules = rulesOf(0);
    leader.ledger.open();
    leader.ledger.want(await migration('m1'));
    await scene.pass(2000);
    expect(await holders()).toEqual([]);
    leader.rules = rulesOf(1, '2');
    leader.ledger.rulesChanged();
    await scene.until(async () => expect(await holders()).toEqual(['m1 reserved']));
  });

  it('does nothing at all while all wait', async () => {
    leader.ledger.open();
    const [first, second] = [await migration('m1'), await migration('m2')];
    for (const request of [first, second]) leader.ledger.want(request);
    await scene.until(async () => expect(await holders()).toHaveLength(2));
    const writes = ledgerWrites().length;
    for (let index = 3; index < 1000; index++) {
      const uid = `waiting-${index}`;
      leader.ledger.want({ ...first, uid, members: [{ namespace: NAMESPACE, name: uid, uid }], createdMs: index });
    }
    await scene.pass(600_000, 60_000);
    expect(ledgerWrites()).toHaveLength(writes);
  });
});

describe('the ledger, when something goes wrong', () => {
  it('remembers after a restart who has what', async () => {
    leader.ledger.open();
    const all = await Promise.all(['m1', 'm2', 'm3'].map((name) => migration(name)));
    leader.ledger.want({ ...(all[0] as SlotRequest), targetNode: 'node-b' });
    leader.ledger.want(all[1] as SlotRequest);
    await scene.until(async () => expect(await holders()).toEqual(['m1 committed', 'm2 reserved']));
    await scene.stopControllers();
    // Nobody was there to see it.
    await scene.delete(migrations, 'm2');
    await scene.startControllers();
    leader.ledger.want(all[2] as SlotRequest);
    leader.ledger.open();
    await scene.until(async () => expect(await holders()).toEqual(['m1 committed', 'm3 reserved']));
    expect(leader.ledger.standing(all[0]?.uid ?? '')).toBe('committed');
  });

  it('neither loses nor doubles what it wrote when the answer gets lost', async () => {
    leader.ledger.open();
    await scene.until(async () => expect(await holders()).toEqual([]));
    scene.loseAnswerOf = /PUT .*configmaps/;
    const all = await Promise.all(['m1', 'm2', 'm3'].map((name) => migration(name)));
    for (const request of all) leader.ledger.want(request);
    await scene.until(() => expect(leader.told.toSorted()).toEqual(['m1 reserved', 'm2 reserved']));
    expect(await holders()).toHaveLength(2);
  });

  it('counts those that run when somebody has deleted it', async () => {
    await migration('m1', 'Running');
    await migration('m2', 'Scheduling');
    await migration('m4', 'Succeeded');
    leader.ledger.open();
    leader.ledger.want(await migration('m3'));
    leader.ledger.want(await migration('m5'));
    await scene.until(async () => expect(await holders()).toEqual(['m1 committed', 'm3 reserved']));
    await scene.client.delete(configMaps, SYSTEM_NAMESPACE, LEDGER_NAME, scene.signal);
    await become('m1', 'Succeeded');
    leader.ledger.ended((await scene.get(migrations, 'm1')).metadata.uid ?? '');
    await scene.until(async () => expect(await holders()).toEqual(['m3 reserved', 'm5 reserved']));
  });

  it('counts one that its guest says is under way, when it is made anew, though its phase does not say so yet', async () => {
    const { uid } = await migration('m1', 'Scheduled');
    await migration('m2', 'Scheduled');
    for (const [name, migrationUid] of [
      ['m1', uid],
      ['m2', 'another'],
    ] as const) {
      await scene.create<VirtualMachineInstance>(virtualMachineInstances, {
        metadata: { name },
        spec: { domain: { devices: {} } },
      });
      const migrationState = { migrationUid, sourceNode: 'node-a', targetNode: 'node-b' };
      await scene.patch(virtualMachineInstances, name, { status: { migrationState } }, 'status');
    }
    leader.ledger.open();
    await scene.until(async () => expect(await holders()).toEqual(['m1 committed']));
    expect([...(await stored()).holders.values()]).toMatchObject([{ sourceNode: 'node-a', targetNode: 'node-b' }]);
    for (const name of ['m1', 'm2']) await scene.delete(virtualMachineInstances, name);
  });

  it('of which an old one was put back gives nobody the slots of those that have started since', async () => {
    leader.ledger.open();
    const first = await migration('m1');
    await scene.until(async () => expect(await holders()).toEqual([]));
    const { data } = await scene.client.get(configMaps, SYSTEM_NAMESPACE, LEDGER_NAME, scene.signal);
    leader.ledger.want({ ...first, targetNode: 'node-b' });
    await scene.until(async () => expect(await holders()).toEqual(['m1 committed']));
    await putBack({ data });
    expect(await holders()).toEqual([]);
    for (const name of ['m2', 'm3']) leader.ledger.want(await migration(name));
    // Neither who knew the other one, though it has not told anybody yet, nor who begins with the old one.
    await scene.until(async () => expect(await holders()).toEqual(['m1 committed', 'm2 reserved']));
    expect(leader.told).not.toContain('m1 nothing');
    await become('m1', 'Running');
    await putBack({ data });
    rival.ledger.want(await migration('m4'));
    rival.ledger.want(await migration('m5'));
    rival.ledger.open();
    await scene.until(async () => expect(await holders()).toHaveLength(2));
    expect(await holders()).toContain('m1 committed');
  });

  it('counts a pair once when it is made anew', async () => {
    const half = async (name: string, spec: VirtualMachineInstanceMigration['spec']): Promise<void> => {
      await scene.create<VirtualMachineInstanceMigration>(migrations, { metadata: { name }, spec });
      await become(name, 'Running');
    };
    const key = { key: 'k', migrationID: 'k' };
    await half('m1', { vmiName: 'm1', sendTo: { ...key, connectURL: 'here:1' } });
    await half('m2', { vmiName: 'm2', receive: key });
    await half('m3', { vmiName: 'm3', receive: { key: 'other', migrationID: 'other' } });
    leader.ledger.open();
    await scene.until(async () => expect(await holders()).toEqual(['m1 committed', 'm3 committed']));
    expect([...(await stored()).holders.values()].map(({ kind, members }) => [kind, members.length])).toEqual([
      ['local', 2],
      ['receive', 1],
    ]);
  });

  it('gives nothing while it cannot be read', async () => {
    leader.ledger.open();
    const first = await migration('m1');
    await scene.until(async () => expect(await holders()).toEqual([]));
    await putBack({ data: { holders: 'm1, I think' } });
    leader.ledger.want(first);
    await scene.pass(20_000);
    expect(leader.told).toEqual([]);
    await scene.client.delete(configMaps, SYSTEM_NAMESPACE, LEDGER_NAME, scene.signal);
    await scene.pass(20_000);
    expect(await holders()).toEqual(['m1 reserved']);
  });
});

describe('two leaders at once', () => {
  it('never give more slots than there are, and everybody gets one in the end', async () => {
    const limits = { perCluster: 2, outboundPerNode: 1, inboundPerNode: 1 };
    const { resourceVersion: start = '' } = (await scene.client.list(migrations, {}, scene.signal)).metadata;
    leader.rules = rival.rules = { ...RULES, limits, limitsVersion: '1' };
    const all = await Promise.all(
      Array.from({ length: 18 }, async (_, index) => ({
        ...(await migration(`m${index}`)),
        sourceNode: `node-${index % 3}`,
        targetNode: `node-${(index + 1) % 3}`,
        priority: index % 2 === 0 ? 50 : 0,
      })),
    );
    const over = new Set<string>();
    const excess: string[][] = [];
    onTold = () => {
      const holders = new Map([...leader.started, ...rival.started].filter(([uid]) => !over.has(uid)));
      const usage = usageOf({ limits, limitsVersion: '1', holders });
      excess.push(usage.excessOver(usageOf({ limits, limitsVersion: '1', holders: new Map() })));
    };
    leader.ledger.open();
    rival.ledger.open();
    // Both know the same ledger when they begin.
    await scene.pass(200, 20);
    // Each knows of some that the other does not know of, and of some together.
    all.forEach((request, index) => {
      if (index % 3 !== 0) leader.ledger.want(request);
      if (index % 3 !== 1) rival.ledger.want(request);
    });
    while (over.size < all.length) {
      const running = await scene.until(async () => {
        const { holders: now } = await stored();
        expect(now.size).toBeGreaterThan(0);
        return [...now.values()];
      });
      const { uid = '', members = [] } = running[over.size % running.length] ?? {};
      if (!over.has(uid)) await become(members[0]?.name ?? '', 'Succeeded');
      over.add(uid);
      // Sometimes one of them hears of it late: meanwhile it goes on wanting slots for what is over.
      const [early, late] = over.size % 3 === 0 ? [leader, rival] : [rival, leader];
      early.ledger.ended(uid);
      if (over.size % 3 === 1) await scene.pass(60, 20);
      late.ledger.ended(uid);
      await scene.pass(100, 20);
    }
    expect(excess.flat()).toEqual([]);
    expect(excess.length).toBeGreaterThan(all.length);
    await expectLawful(start);
  });

  it('an old one that believes in an old limit does not bring it back', async () => {
    leader.ledger.open();
    leader.ledger.want(await migration('m1'));
    await scene.until(async () => expect(await holders()).toEqual(['m1 reserved']));
    leader.rules = rulesOf(1, '12');
    leader.ledger.rulesChanged();
    await scene.until(async () => expect((await stored()).limitsVersion).toBe('12'));
    rival.rules = rulesOf(2, '9');
    rival.ledger.want(await migration('m2'));
    rival.ledger.open();
    await scene.pass(3000);
    expect(await holders()).toEqual(['m1 reserved']);
  });

  it('what an old one lets in though it is over loses its slot again', async () => {
    leader.ledger.open();
    const [first, second] = [await migration('m1', 'Failed'), await migration('m2')];
    await scene.until(async () => expect(await holders()).toEqual([]));
    rival.ledger.want(first);
    rival.ledger.open();
    await scene.until(async () => expect(await holders()).toEqual(['m1 reserved']));
    leader.ledger.want(second);
    await scene.until(() => expect(leader.told).toContain('m2 reserved'));
    await scene.until(async () => expect(await holders()).not.toContain('m1 reserved'));
  });
});

/** Looks at every ledger that there was since. */
async function expectLawful(start: string): Promise<void> {
  const { items } = await scene.client.list(configMaps, { namespace: SYSTEM_NAMESPACE }, scene.signal);
  const end = items.find(({ metadata }) => metadata.name === LEDGER_NAME)?.metadata.resourceVersion;
  const watch = new AbortController();
  let versions = 0;
  let before = usageOf({ limits: RULES.limits, limitsVersion: '0', holders: new Map() });
  const events = await scene.client.watch(
    configMaps,
    { namespace: SYSTEM_NAMESPACE, resourceVersion: start },
    watch.signal,
  );
  for await (const event of events) {
    if (event.type === 'ERROR') throw new Error(JSON.stringify(event.object));
    if (event.object.metadata.name !== LEDGER_NAME) continue;
    const usage = usageOf(parseLedger(event.object.data ?? {}));
    expect(usage.excessOver(before)).toEqual([]);
    before = usage;
    versions++;
    if (event.object.metadata.resourceVersion === end) break;
  }
  watch.abort();
  expect(versions).toBeGreaterThan(10);
}
