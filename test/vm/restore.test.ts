import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { claim, probe, virtualMachine } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';

/** The data of the API is lost while guests run, and put back from a backup, as docs/operations.md says. */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

const PATIENCE_MS = 120_000;
const LOOK_MS = 20;
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';

let guests: MovingGuests;
beforeAll(async () => (guests = await MovingGuests.start({ nodes: 2 })));
afterAll(() => guests.stop());

const onClaim = (name: string): object =>
  probe({ volumes: [{ name: 'data', source: { persistentVolumeClaim: { claimName: name } } }] });

/** How many machines each guest has, by what is said on their command lines. */
function machinesOf(pids: readonly number[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const pid of pids) {
    const name = /guest=default\/([a-z-]+)/.exec(commandLine(pid))?.[1];
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    // It has just ended.
    return '';
  }
}

/** Looks at all machines again and again; what it answers stops that, and tells which guests had two at once. */
function watchForDoubles(): () => string[] {
  const doubled = new Set<string>();
  const timer = setInterval(() => {
    for (const [name, count] of machinesOf(guests.host.qemus())) if (count > 1) doubled.add(name);
  }, LOOK_MS);
  return () => {
    clearInterval(timer);
    return [...doubled];
  };
}

describe('data that was restored from a backup', () => {
  it('lets no guest run twice, whatever happened since, and guests move on', async () => {
    const { host } = guests;
    const { directory } = host.godwit;
    for (const name of ['steady', 'moved', 'late']) await host.create(claim(name, 'shared', '4Mi'));
    for (const name of ['steady', 'moved']) await guests.create(name, onClaim(name));
    await guests.create('deleted', probe());
    await host.create(virtualMachine('late', onClaim('late'), { runStrategy: 'Halted' }));

    const backup = join(directory, '..', 'backup');
    await host.cli('backup', backup, '--data-dir', directory);

    await guests.move('moved');
    await host.power('late', 'start');
    await guests.knows('late');
    await guests.create('unknown', probe());
    await guests.remove('deleted');

    await host.godwit.kill();
    for (const part of ['data', 'pki']) {
      rmSync(join(directory, part), { recursive: true });
      cpSync(join(backup, part), join(directory, part), { recursive: true });
    }
    const doubled = watchForDoubles();
    await host.godwit.start();
    expect(host.godwit.output).toContain('No virtual machine starts before these nodes were heard: node-1, node-2');
    await eventually(async () => {
      const { status } = (await host.api.request('GET', KUBEVIRT)).expect(200).json;
      expect(status.restoration.unheard).toEqual([]);
    }, PATIENCE_MS);

    // What is as the data says never noticed.
    await guests.isWhole('steady');
    // What the data knows elsewhere, or does not know, is ended; and starts afresh where it should run.
    await eventually(async () => {
      expect((await host.lives('moved')).boot).not.toBe(guests.bootOf('moved'));
      // What comes back with the data starts anew, though its node has long ended it.
      expect((await host.lives('deleted')).boot).not.toBe(guests.bootOf('deleted'));
      expect(Object.fromEntries(machinesOf(host.qemus()))).toEqual({ deleted: 1, moved: 1, steady: 1 });
    }, PATIENCE_MS);
    expect(doubled()).toEqual([]);
    expect((await host.machine('late')).status.printableStatus).toBe('Stopped');

    await guests.move('steady');
    await eventually(() => host.power('late', 'start'), PATIENCE_MS);
    await host.lives('late');
  });
});
