import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { configMaps, secrets } from '../../cluster/resources.ts';
import { ControlScene, NAMESPACE } from '../../control/control.fixture.ts';
import { realRandom } from '../../env/real.ts';
import { silentLogger } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachines as machines,
} from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import type { TransportRequest, TransportResponse } from '../../kube/transport.ts';
import { halvesOf } from './halves.ts';
import { claimObjects, type Making, makeObjects, makeReceivingHalf, makeSendingHalf, reachedAt } from './making.ts';
import type { MovePlan } from './plan.ts';
import type { ObjectState, PlannedObject } from './planned-objects.ts';
import { MOVE_LABEL, RUN_ANNOTATION } from './receiving-machine.ts';
import { removeLeftovers, removeMade } from './removing.ts';
import type { SeenMove } from './seen.ts';
import { Traces } from './traces.ts';

/** Runs of one and the same move that make, and remove, at the same time. Nobody else is there. */

const scene = new ControlScene();
let id: string;
let name: string;
let count = 0;

beforeAll(() => scene.start());
afterAll(() => scene.stop());
beforeEach(() => {
  id = `move-${++count}`;
  name = `web-${count}`;
});

type Answer = (asked: TransportRequest, pass: () => Promise<TransportResponse>) => Promise<TransportResponse>;

/** One run, whose requests are answered otherwise where a test says so. */
function run(answer: Answer = (_, pass) => pass()): Making {
  const transport = scene.clientTransport();
  const send = (asked: TransportRequest): Promise<TransportResponse> => answer(asked, () => transport.send(asked));
  const client = new Client({ send, close: () => undefined }, 'test');
  const env = { clock: scene.clock, random: realRandom, log: silentLogger };
  return { source: client, target: client, env, print: () => undefined, traces: new Traces() };
}

async function* pieces(text: string): AsyncGenerator<string> {
  yield text;
}

const kind = <T extends KubeObject>(resource: Resource<T>): Resource => resource as unknown as Resource;
const labelled = (): JsonObject => ({ name, namespace: NAMESPACE, labels: { [MOVE_LABEL]: id } });

function planned<T extends KubeObject>(resource: Resource<T>, there?: T): PlannedObject {
  const object = { metadata: labelled() } as unknown as KubeObject;
  return { resource: kind(resource), object: there ?? object, state: there ? 'made' : 'missing', about: '' };
}

function waiting(): VirtualMachine {
  const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
  return { metadata: labelled(), spec: { runStrategy: 'WaitAsReceiver', template } } as unknown as VirtualMachine;
}

function planOf(
  objects: readonly PlannedObject[],
  object: VirtualMachine = waiting(),
  state: ObjectState | 'taken back' = 'missing',
): MovePlan {
  return { id, objects, machine: { object, state } } as unknown as MovePlan;
}

function seen(more: object = {}): SeenMove {
  const source = { machine: { spec: { runStrategy: 'Always' } }, migrations: [] };
  const place = { namespace: NAMESPACE, name };
  return { request: { from: place, to: place }, source, target: { migrations: [] }, ...more } as unknown as SeenMove;
}

const key = { key: 'k' };
const isOwnOnly = { isOwnOnly: true };

describe('who is refused', () => {
  it('because another run was first goes on with what that one made, and does not remove it', async () => {
    const later = run(async (asked, pass) => {
      if (asked.method !== 'POST' || !asked.path.includes('/secrets')) return pass();
      for await (const _ of (await pass()).body);
      return { status: 403, headers: {}, body: pieces('exceeded quota: tight') };
    });
    const plan = planOf([planned(secrets)]);
    expect(await makeObjects(plan, seen(), key, later, scene.signal)).toBe(true);
    await removeMade(plan, key, seen(), later, scene.signal, isOwnOnly);
    expect(await scene.find(secrets, name)).toBeDefined();
    expect(await scene.find(machines, name)).toBeUndefined();
  });

  it('removes what it made itself, and nothing of what it found', async () => {
    const secret = await scene.create(secrets, planned(secrets).object as never);
    const plan = planOf([planned(secrets, secret as never), planned(configMaps)]);
    const later = run();
    await makeObjects(plan, seen(), key, later, scene.signal);
    await removeMade(plan, key, seen(), later, scene.signal, isOwnOnly);
    expect(await scene.find(secrets, name)).toBeDefined();
    expect(await scene.find(configMaps, name)).toBeUndefined();
    expect(await scene.find(machines, name)).toBeUndefined();
  });

  it('leaves the machine of another run, and what that needs', async () => {
    const machine = await scene.create(machines, waiting());
    const plan = planOf([planned(secrets)], machine, 'made');
    const later = run();
    await makeObjects(plan, seen(), key, later, scene.signal);
    const left = await removeMade(plan, key, seen(), later, scene.signal, isOwnOnly);
    expect(left).toEqual({ source: [], target: [`virtualmachine/${name} in ${NAMESPACE}`, `secret/${name}`] });
    expect(await scene.find(secrets, name)).toBeDefined();
    expect(await scene.find(machines, name)).toBeDefined();
  });

  it('is told so where nobody made it', async () => {
    const refused = run(async (asked, pass) =>
      asked.method === 'POST' ? { status: 403, headers: {}, body: pieces('exceeded quota: tight') } : pass(),
    );
    const made = makeObjects(planOf([planned(secrets)]), seen(), key, refused, scene.signal);
    await expect(made).rejects.toThrow('exceeded quota');
  });
});

describe('what is going away', () => {
  it('is not used, though it is of the same move', async () => {
    const object = { metadata: { ...labelled(), finalizers: ['test/slow'] } };
    await scene.create(secrets, object as never);
    await scene.delete(secrets, name);
    expect(await makeObjects(planOf([planned(secrets)]), seen(), key, run(), scene.signal)).toBe(false);
  });
});

describe('what a newer run made', () => {
  it('is not removed by the one before, though it has the same names and label', async () => {
    const plan = planOf([planned(secrets)]);
    const [earlier, newer] = [run(), run()];
    await makeObjects(plan, seen(), key, earlier, scene.signal);
    await scene.delete(kind(machines), name);
    await scene.delete(secrets, name);
    await makeObjects(plan, seen(), key, newer, scene.signal);
    await removeMade(plan, key, seen(), earlier, scene.signal);
    expect(await scene.find(machines, name)).toBeDefined();
    await scene.delete(kind(machines), name);
    await removeMade(plan, key, seen(), earlier, scene.signal);
    expect(await scene.find(secrets, name)).toBeDefined();
    await removeMade(plan, key, seen(), newer, scene.signal);
    expect(await scene.find(secrets, name)).toBeUndefined();
  });

  it('or uses is not removed by the one before, in whichever instant it begins to use it', async () => {
    const plan = planOf([planned(secrets), planned(configMaps)]);
    const newer = run();
    /** The newer run has seen all that is there, and says that it is its own just before the first of it is removed. */
    const begin = async (): Promise<void> => {
      const [secret, map] = [await scene.get(secrets, name), await scene.get(configMaps, name)];
      const there = planOf(
        [planned(secrets, secret as never), planned(configMaps, map as never)],
        await scene.get(machines, name),
        'made',
      );
      expect(await claimObjects(there, { key: 'newer' }, newer, scene.signal)).toBe(true);
    };
    let hasBegun = false;
    const earlier = run(async ({ method }, pass) => {
      if (method === 'DELETE' && !hasBegun) {
        hasBegun = true;
        await begin();
      }
      return pass();
    });
    await makeObjects(plan, seen(), key, earlier, scene.signal);
    const { target } = await removeMade(plan, key, seen(), earlier, scene.signal);
    expect(target).toEqual([`virtualmachine/${name} in ${NAMESPACE}`, `secret/${name}`, `configmap/${name}`]);
    await scene.delete(kind(machines), name);
    const left = await removeMade(plan, key, seen(), earlier, scene.signal);
    expect(left.target).toEqual([`configmap/${name}`, `secret/${name}`]);
    expect(await scene.find(secrets, name)).toBeDefined();
    expect((await removeMade(plan, { key: 'newer' }, seen(), earlier, scene.signal)).target).toEqual([]);
    expect(await scene.find(secrets, name)).toBeUndefined();
  });

  it('begins anew where what it has seen is gone before it says that it uses it', async () => {
    const secret = await scene.create(secrets, planned(secrets).object as never);
    const plan = planOf([planned(secrets, secret as never)]);
    const later = run();
    await makeObjects(plan, seen(), key, later, scene.signal);
    await scene.delete(secrets, name);
    expect(await claimObjects(plan, key, later, scene.signal)).toBe(false);
    await scene.create(secrets, planned(secrets).object as never);
    expect(await claimObjects(plan, key, later, scene.signal)).toBe(false);
  });

  it('is no leftover, though one of that name was', async () => {
    const { receive } = halvesOf(id, 'k');
    const half = { metadata: { ...labelled(), name: receive }, spec: { vmName: name, receive: { key: 'k' } } };
    const there = await scene.create(migrations, half as never);
    const over = { ...there, metadata: { ...there.metadata, uid: 'before' }, status: { phase: 'Failed' } };
    const looked = seen({ target: { migrations: [over] } });
    await removeLeftovers({ id }, looked, run(), scene.signal);
    expect(await scene.find(migrations, receive)).toBeDefined();
  });
});

describe('what another machine refers to', () => {
  it('stays, and it is said that it does', async () => {
    const plan = planOf([planned(secrets)]);
    const only = run();
    await makeObjects(plan, seen(), key, only, scene.signal);
    const template = { spec: { domain: { devices: {} }, volumes: [{ name: 's', secret: { secretName: name } }] } };
    const other = { metadata: { name: `${name}-other` }, spec: { runStrategy: 'Halted', template } };
    await scene.create(machines, other as never);
    const left = await removeMade(plan, key, seen(), only, scene.signal);
    expect(left).toEqual({ source: [], target: [`secret/${name}`] });
    expect(await scene.find(secrets, name)).toBeDefined();
    await scene.delete(kind(machines), other.metadata.name);
  });
});

describe('a machine that is taken back', () => {
  const shown = async (): Promise<unknown> => (await scene.get(machines, name)).spec.runStrategy;
  const write = (metadata: JsonObject): Promise<void> => scene.patch(kind(machines), name, { metadata });

  /** A run before whose first patch somebody else writes. */
  const beaten = (metadata: JsonObject): Making => {
    let isFirst = true;
    return run(async ({ method }, pass) => {
      if (method === 'PATCH' && isFirst) {
        isFirst = false;
        await write(metadata);
      }
      return pass();
    });
  };

  it('is halted again, whatever is written to it meanwhile', async () => {
    const plan = planOf([], await scene.create(machines, waiting()), 'taken back');
    await removeMade(plan, key, seen(), beaten({ annotations: { a: 'b' } }), scene.signal);
    expect(await shown()).toBe('Halted');
  });

  it.each<[string, () => Promise<void>]>([
    [
      'another one by now',
      () =>
        scene
          .delete(kind(machines), name)
          .then(() => scene.create(machines, waiting()))
          .then(() => undefined),
    ],
    ['used by another run by now', () => write({ annotations: { [RUN_ANNOTATION]: 'another' } })],
    ['that of another move by now', () => write({ labels: { [MOVE_LABEL]: 'another' } })],
  ])('waits on where it is %s', async (_, change) => {
    const plan = planOf([], await scene.create(machines, waiting()), 'taken back');
    await change();
    await removeMade(plan, key, seen(), run(), scene.signal);
    expect(await shown()).toBe('WaitAsReceiver');
  });

  it('waits on where it becomes that of another move in the same instant', async () => {
    const plan = planOf([], await scene.create(machines, waiting()), 'taken back');
    await removeMade(plan, key, seen(), beaten({ labels: { [MOVE_LABEL]: 'another' } }), scene.signal);
    expect(await shown()).toBe('WaitAsReceiver');
  });

  it('waits on where another run had it wait, which is not refused', async () => {
    const plan = planOf([], await scene.create(machines, waiting()), 'taken back');
    const later = run();
    expect(await makeObjects(plan, seen(), key, later, scene.signal)).toBe(true);
    await removeMade(plan, key, seen(), later, scene.signal, isOwnOnly);
    expect(await shown()).toBe('WaitAsReceiver');
  });

  it('is looked at again where it is not as it was', async () => {
    const plan = planOf([], await scene.create(machines, waiting()), 'taken back');
    expect(await makeObjects(plan, seen(), key, beaten({ annotations: { a: 'b' } }), scene.signal)).toBe(false);
  });
});

describe('a migration that has the name of a half', () => {
  it.each<[string, object]>([
    ['sends', { sendTo: { key: 'k', connectURL: 'a:1' } }],
    ['receives another machine', { vmName: 'other', receive: { key: 'k' } }],
  ])('and %s is not taken for the one that receives', async (_, spec) => {
    const halves = halvesOf(id, 'k');
    const half = { metadata: { ...labelled(), name: halves.receive }, spec: { vmName: name, ...spec } };
    await scene.create(migrations, half as never);
    const made = makeReceivingHalf({ id }, halves, seen().request, run(), scene.signal);
    await expect(made).rejects.toThrow(/the name of a half of this move, and is none/);
  });

  it('and receives is not taken for the one that sends', async () => {
    const halves = halvesOf(id, 'k');
    const half = { metadata: { ...labelled(), name: halves.send }, spec: { vmName: name, receive: { key: 'k' } } };
    await scene.create(migrations, half as never);
    const made = makeSendingHalf({ id }, 'a:1', halves, seen().request, run(), scene.signal);
    await expect(made).rejects.toThrow(/the name of a half of this move, and is none/);
  });
});

describe('where the target is reached', () => {
  it.each<[string, string | undefined, () => Promise<void>]>([
    ['waits', 'a:1', async () => undefined],
    [
      'is over',
      undefined,
      () => scene.patch(kind(migrations), halvesOf(id, 'k').receive, { status: { phase: 'Failed' } }, 'status'),
    ],
    ['is called off', undefined, () => scene.delete(kind(migrations), halvesOf(id, 'k').receive)],
  ])('by a half that %s: %s', async (_, address, change) => {
    const halves = halvesOf(id, 'k');
    const metadata = { ...labelled(), name: halves.receive, finalizers: ['test/slow'] };
    await scene.create(migrations, { metadata, spec: { vmName: name, receive: { key: 'k' } } } as never);
    await scene.patch(kind(migrations), halves.receive, { status: { syncEndpoint: 'a:1' } }, 'status');
    await change();
    expect(await reachedAt(halves, seen().request, run(), scene.signal)).toBe(address);
  });
});
