import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { claim, linux, probe } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { allOnKubernetes, someOf } from '../support/sample.ts';

/** Guests get a newer launcher, and what is changed of them while they run, by being moved. */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

const API = '/apis/kubevirt.io/v1/namespaces/default';
const PODS = '/api/v1/namespaces/default/pods';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const LEDGER = '/api/v1/namespaces/kubevirt/configmaps/godwit-migration-slots';
const MERGE = { 'content-type': 'application/merge-patch+json' };
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };
/** How long anything may take that is under way, on a machine under load. */
const PATIENCE_MS = 90_000;
const INTERVAL_SECONDS = 5;
const OLD_LAUNCHER = 'godwit/launcher:v0.0.0';

let guests: MovingGuests;
beforeAll(async () => (guests = await MovingGuests.start({ nodes: 2, linux: true })));
afterAll(() => guests.stop());

async function patch(path: string, body: object, headers = MERGE): Promise<Anything> {
  return (await guests.host.api.request('PATCH', path, { body, headers })).expect(200).json;
}

const allow = (...workloadUpdateMethods: readonly string[]): Promise<Anything> =>
  patch(KUBEVIRT, { spec: { workloadUpdateStrategy: { workloadUpdateMethods } } });

/** Waits until the controllers know a configuration: the ledger of slots says which one they know. */
async function isHeard({ metadata }: Anything): Promise<void> {
  await eventually(async () => {
    const { data } = (await guests.host.api.request('GET', LEDGER)).expect(200).json;
    expect(Number(JSON.parse(data.limits).version)).toBeGreaterThanOrEqual(Number(metadata.resourceVersion));
  });
}

/** What of a machine's template changes. */
const change = (name: string, domain: object): Promise<Anything> =>
  patch(`${API}/virtualmachines/${name}`, { spec: { template: { spec: { domain } } } });

const updatesOf = async (name: string): Promise<Anything[]> =>
  (await guests.migrations()).filter(({ spec }) => spec.vmiName === name && spec.cause === 'WorkloadUpdate');

/** Waits for the update of a guest to be over, and answers it. */
async function isUpdated(name: string): Promise<Anything> {
  const update = await eventually(async () => {
    const [found] = await updatesOf(name);
    expect(found, `an update of ${name}`).toBeDefined();
    return found;
  }, PATIENCE_MS);
  return guests.succeeds(update.metadata.name);
}

const condition = async (name: string, type: string): Promise<Anything> =>
  (await guests.host.guest(name)).status.conditions.find((each: Anything) => each.type === type);

/** As if its launcher had been started by a version before this one. */
async function makeOutdated(name: string): Promise<void> {
  const { podUID } = await guests.holder(name);
  const { items } = (await guests.host.api.request('GET', PODS)).expect(200).json;
  const pod = items.find(({ metadata }: Anything) => metadata.uid === podUID);
  const containers = [{ name: 'compute', image: OLD_LAUNCHER }];
  await patch(`${PODS}/${pod.metadata.name}`, { spec: { containers } }, STRATEGIC);
  await eventually(async () => {
    const { status, metadata } = await guests.host.guest(name);
    expect(status.launcherContainerImageVersion).toBe(OLD_LAUNCHER);
    expect(metadata.labels).toHaveProperty('kubevirt.io/outdatedLauncherImage');
  });
}

const outdatedCount = async (): Promise<number | undefined> =>
  (await guests.host.api.request('GET', KUBEVIRT)).expect(200).json.status?.outdatedVirtualMachineInstanceWorkloads;

const some = someOf(...allOnKubernetes(6, 2), describe);

some('a guest in an old launcher', () => {
  it('moves to a new one once the cluster allows it, and not before', async () => {
    await guests.create('old', probe());
    const before = await guests.holder('old');
    await makeOutdated('old');
    await eventually(async () => expect(await outdatedCount()).toBe(1));
    expect(await updatesOf('old')).toEqual([]);
    await allow('LiveMigrate');
    const { spec, metadata } = await isUpdated('old');
    expect(spec.priority).toBe('system-critical');
    expect(metadata.name).toMatch(/^kubevirt-workload-update-/);
    await guests.isWhole('old');
    expect((await guests.holder('old')).node).not.toBe(before.node);
    await eventually(async () => {
      const guest = await guests.host.guest('old');
      expect(guest.status.launcherContainerImageVersion).not.toBe(OLD_LAUNCHER);
      expect(guest.metadata.labels).not.toHaveProperty('kubevirt.io/outdatedLauncherImage');
      expect(await outdatedCount()).toBe(0);
    });
    await guests.remove('old');
  });

  it('moves once, though it is to leave its node besides', async () => {
    await allow();
    // It moves for long enough that whatever asks first, the other does so meanwhile.
    const labels = { pace: 'slow' };
    await guests.policy('slow', labels, { bandwidthPerMigration: '1Mi' });
    const spec = probe({ memory: '32Mi', arguments: 'mib=12 hz=200 rate=0', evictionStrategy: 'LiveMigrate' });
    await guests.create('both', spec, labels);
    const before = await guests.holder('both');
    await makeOutdated('both');
    const { items } = (await guests.host.api.request('GET', PODS)).expect(200).json;
    const pod = items.find(({ metadata }: Anything) => metadata.uid === before.podUID);
    const { name, namespace } = pod.metadata;
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
    await allow('LiveMigrate');
    (await guests.host.api.request('POST', `${PODS}/${name}/eviction`, { body: eviction })).expect(429);
    await eventually(async () => expect((await guests.holder('both')).node).not.toBe(before.node), PATIENCE_MS);
    await guests.isWhole('both');
    await eventually(async () => {
      const all = (await guests.migrations()).filter(({ spec }) => spec.vmiName === 'both');
      expect(all.map(({ status }) => status.phase)).toEqual(['Succeeded']);
      expect(all[0].status.causes.map((each: Anything) => each.cause).toSorted()).toEqual([
        'APIEviction',
        'WorkloadUpdate',
      ]);
    }, PATIENCE_MS);
    await guests.remove('both');
  });
});

some('guests in old launchers that nobody may move', () => {
  const evictedMs = async (name: string): Promise<number> =>
    eventually(async () => {
      const { items } = (await guests.host.api.request('GET', '/api/v1/namespaces/default/events')).expect(200).json;
      const told = items.find(
        (each: Anything) => each.involvedObject.name === name && each.reason === 'SuccessfulEvict',
      );
      expect(told, name).toBeDefined();
      return Date.parse(told.firstTimestamp ?? told.eventTime);
    }, PATIENCE_MS);

  it('are evicted a few at a time, and started anew; who is protected moves all the same', async () => {
    await allow();
    const doomed = ['first', 'second', 'third'];
    await Promise.all(doomed.map((name) => guests.create(name, probe({ graceSeconds: 3 }))));
    await guests.create('kept', probe({ evictionStrategy: 'LiveMigrate' }));
    const before = new Map<string, Anything>();
    for (const name of [...doomed, 'kept']) {
      await makeOutdated(name);
      before.set(name, await guests.host.guest(name));
    }
    const batches = { batchEvictionSize: 2, batchEvictionInterval: `${INTERVAL_SECONDS}s` };
    await patch(KUBEVIRT, { spec: { workloadUpdateStrategy: { workloadUpdateMethods: ['Evict'], ...batches } } });
    const times = (await Promise.all(doomed.map(evictedMs))).toSorted((one, other) => one - other);
    // Two at most of all four are asked for at once. Events have times of whole seconds.
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan((INTERVAL_SECONDS - 1) * 1000 - 1);
    for (const name of doomed) {
      await guests.host.livesAnew(name, before.get(name));
      expect((await guests.migrations()).filter(({ spec }) => spec.vmiName === name)).toEqual([]);
    }
    await eventually(async () => {
      const { metadata, status } = await guests.host.guest('kept');
      expect(metadata.uid).toBe(before.get('kept').metadata.uid);
      expect(status.launcherContainerImageVersion).not.toBe(OLD_LAUNCHER);
    }, PATIENCE_MS);
    await guests.isWhole('kept');
    await eventually(async () => expect(await outdatedCount()).toBe(0));
    await allow();
    await Promise.all([...doomed, 'kept'].map((name) => guests.remove(name)));
  });
});

some('a guest that gets more processors', () => {
  const size = async (): Promise<string> => {
    const answer: string = await guests.host.ask('linux', 'size');
    return /processors=\d+/.exec(answer)?.[0] ?? answer;
  };

  it('has them after a move, and keeps them after the next', async () => {
    await allow('LiveMigrate');
    await guests.create('linux', linux());
    expect(await size()).toBe('processors=1');
    expect((await guests.host.guest('linux')).spec.domain.cpu.maxSockets).toBe(4);
    await change('linux', { cpu: { sockets: 3 } });
    expect((await isUpdated('linux')).spec.priority).toBe('user-triggered');
    await guests.isWhole('linux');
    // Linux switches them on itself.
    await eventually(async () => expect(await size()).toBe('processors=3'), PATIENCE_MS);
    const { status, spec } = await guests.host.guest('linux');
    expect(status.currentCPUTopology).toMatchObject({ sockets: 3, cores: 1, threads: 1 });
    expect(spec.domain.cpu.sockets).toBe(3);
    await eventually(async () => expect(await condition('linux', 'HotVCPUChange')).toBeUndefined());
    await guests.host.told('linux', /SuccessfulProcessorPlug/);
    await guests.move('linux');
    expect(await size()).toBe('processors=3');
    expect(await guests.host.ask('linux', 'memory')).toMatch(/ bad=0\b/);
    expect(await updatesOf('linux')).toHaveLength(1);
  });

  it('does not move for a change that is taken back before anybody acts on it', async () => {
    await allow();
    await change('linux', { cpu: { sockets: 4 } });
    await eventually(async () => expect((await condition('linux', 'HotVCPUChange'))?.status).toBe('True'));
    await change('linux', { cpu: { sockets: 3 } });
    await eventually(async () => expect(await condition('linux', 'HotVCPUChange')).toBeUndefined());
    await allow('LiveMigrate');
    expect(await size()).toBe('processors=3');
    expect(await updatesOf('linux')).toHaveLength(1);
  });

  it('is to be restarted for more than it may have, or for fewer', async () => {
    const restart = async (): Promise<string | undefined> => {
      const { status } = (await guests.host.api.request('GET', `${API}/virtualmachines/linux`)).expect(200).json;
      return status.conditions.find((each: Anything) => each.type === 'RestartRequired')?.message;
    };
    await change('linux', { cpu: { sockets: 5 } });
    await eventually(async () => expect(await restart()).toMatch(/higher than what's available/));
    await change('linux', { cpu: { sockets: 2 } });
    await eventually(async () => expect(await restart()).toMatch(/requires a restart/));
    await change('linux', { cpu: { sockets: 3 } });
    await eventually(async () => expect(await restart()).toBeUndefined());
    expect(await size()).toBe('processors=3');
    await guests.remove('linux');
  });
});

some('a guest whose change is taken back while it moves', () => {
  it('stays where it is, and its migration goes', async () => {
    await allow('LiveMigrate');
    await guests.configure({}, ['MigrationDowntimeTuning']);
    await guests.policy('endless', { pace: 'endless' }, { bandwidthPerMigration: '1Mi', maxDowntimeMs: 1 });
    await guests.create('regret', probe({ arguments: 'mib=8 rate=20' }), { pace: 'endless' });
    const before = await guests.holder('regret');
    await change('regret', { cpu: { sockets: 2 } });
    const update = await eventually(async () => {
      const [found] = await updatesOf('regret');
      expect(found?.status?.phase).toBe('Running');
      return found;
    }, PATIENCE_MS);
    await change('regret', { cpu: { sockets: 1 } });
    await guests.isGone(update.metadata.name);
    await guests.host.told('regret', /SuccessfulChangeAbortion: /);
    expect(await guests.holder('regret')).toEqual(before);
    await guests.isWhole('regret');
    expect(await updatesOf('regret')).toEqual([]);
    await guests.remove('regret');
  });
});

some('a guest that gets more memory', () => {
  const has = (amount: string): Promise<void> =>
    eventually(async () => {
      const { memory } = (await guests.host.guest('large')).status;
      expect(memory).toMatchObject({ guestAtBoot: '192Mi', guestCurrent: amount });
    }, PATIENCE_MS);
  const size = async (): Promise<number> =>
    Number(/ memory=(\d+)MiB/.exec(await guests.host.ask('large', 'size'))?.[1] ?? Number.NaN);

  it('has it after a move, and keeps it after the next', async () => {
    await allow('LiveMigrate');
    const spec = linux({ memory: '192Mi', arguments: 'rate=5' }) as { domain: { memory: object } };
    Object.assign(spec.domain.memory, { maxGuest: '448Mi' });
    await guests.create('large', spec);
    const before = await size();
    await change('large', { memory: { guest: '320Mi' } });
    expect((await isUpdated('large')).spec.priority).toBe('user-triggered');
    await guests.isWhole('large');
    await has('320Mi');
    // Linux takes it in by itself, in its own time.
    await eventually(async () => expect(await size()).toBe(before + 128), PATIENCE_MS);
    await eventually(async () => expect(await condition('large', 'HotMemoryChange')).toBeUndefined());
    await guests.host.told('large', /SuccessfulMemoryPlug/);
    await guests.move('large');
    expect(await size()).toBe(before + 128);
    expect(await guests.host.ask('large', 'memory')).toMatch(/ bad=0\b/);
    await change('large', { memory: { guest: '448Mi' } });
    await has('448Mi');
    await eventually(async () => expect(await size()).toBe(before + 256), PATIENCE_MS);
    await guests.isWhole('large');
    expect(await guests.host.ask('large', 'memory')).toMatch(/ bad=0\b/);
    expect(await updatesOf('large')).toHaveLength(2);
  });

  it('goes on where it was when a move is called off, though it may have stood still for it', async () => {
    await guests.configure({ bandwidthPerMigration: '1Mi' });
    const before = await guests.holder('large');
    const migration = await guests.ask('large');
    await guests.reaches(migration, 'Running');
    await guests.cancel(migration);
    await guests.isGone(migration);
    await guests.configure({ bandwidthPerMigration: '0' });
    await guests.isWhole('large');
    expect(await guests.holder('large')).toEqual(before);
    expect((await condition('large', 'Paused'))?.status).not.toBe('True');
    await guests.move('large');
    expect(await guests.host.ask('large', 'memory')).toMatch(/ bad=0\b/);
  });

  it('is to be restarted for what does not come in pieces, for more than it may have, or for less', async () => {
    const restart = async (): Promise<string | undefined> => {
      const { status } = (await guests.host.api.request('GET', `${API}/virtualmachines/large`)).expect(200).json;
      return status.conditions.find((each: Anything) => each.type === 'RestartRequired')?.message;
    };
    await change('large', { memory: { guest: '1Gi' } });
    await eventually(async () => expect(await restart()).toMatch(/higher than what is available/));
    await change('large', { memory: { guest: '320Mi' } });
    await eventually(async () => expect(await restart()).toMatch(/requires a restart/));
    await change('large', { memory: { guest: '448Mi' } });
    await eventually(async () => expect(await restart()).toBeUndefined());
    await guests.remove('large');
  });
});

some('a guest whose volume is to be on another claim', () => {
  const VOLUME = 'data';
  const onClaim = (claimName: string): object => ({ name: VOLUME, persistentVolumeClaim: { claimName } });
  const put = (name: string, claimName: string): Promise<Anything> =>
    patch(`${API}/virtualmachines/${name}`, {
      spec: { updateVolumesStrategy: 'Migration', template: { spec: { volumes: [onClaim(claimName)] } } },
    });
  const machine = async (name: string): Promise<Anything> =>
    (await guests.host.api.request('GET', `${API}/virtualmachines/${name}`)).expect(200).json;

  it('goes there with all that it has written, from a disk of one node to a disk of another', async () => {
    for (const name of ['first', 'second']) await guests.host.create(claim(name, 'local'));
    await guests.create('disk', probe({ volumes: [{ name: VOLUME, source: onClaim('first') }] }));
    const before = await guests.holder('disk');
    expect(await condition('disk', 'LiveMigratable')).toMatchObject({ status: 'False' });
    await allow('LiveMigrate');
    await put('disk', 'second');
    const { metadata, spec } = await isUpdated('disk');
    expect(spec.priority).toBe('user-triggered');
    expect(metadata.labels['kubevirt.io/volume-update-migration']).toBe('disk');
    await guests.isWhole('disk');
    expect((await guests.holder('disk')).node).not.toBe(before.node);
    expect(await guests.host.ask('disk', 'disk')).toMatch(/ bad=0\b/);
    await eventually(async () => {
      expect(await condition('disk', 'VolumesChange')).toBeUndefined();
      expect((await guests.host.guest('disk')).status.migratedVolumes).toBeUndefined();
      expect((await machine('disk')).status.volumeUpdateState).toBeUndefined();
    });
    expect((await guests.host.guest('disk')).spec.volumes).toEqual([onClaim('second')]);
  });

  it('stays where it is when that is taken back, and is not started on a claim without its data', async () => {
    await isHeard(await allow());
    await guests.host.create(claim('third', 'local'));
    await put('disk', 'third');
    await eventually(async () => {
      expect(await condition('disk', 'VolumesChange')).toMatchObject({ status: 'True' });
      expect((await guests.host.guest('disk')).status.migratedVolumes).toMatchObject([
        { volumeName: VOLUME, sourcePVCInfo: { claimName: 'second' }, destinationPVCInfo: { claimName: 'third' } },
      ]);
    });
    await put('disk', 'second');
    await eventually(async () => expect(await condition('disk', 'VolumesChange')).toBeUndefined());
    expect(await updatesOf('disk')).toHaveLength(1);
    await put('disk', 'third');
    await eventually(async () => expect(await condition('disk', 'VolumesChange')).toMatchObject({ status: 'True' }));
    await guests.host.delete('VirtualMachineInstance', 'disk');
    await eventually(async () => {
      const failure = (await machine('disk')).status.conditions.find((each: Anything) => each.type === 'Failure');
      expect(failure?.reason).toBe('ManualRecoveryRequired');
    }, PATIENCE_MS);
    await put('disk', 'second');
    await guests.host.lives('disk');
    await guests.remove('disk');
  });
});
