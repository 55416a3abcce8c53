import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { probe } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { IS_PAIRED } from '../support/sample.ts';

/** What people type who know KubeVirt: manifests and commands of its documentation move a guest here, too. */

vi.setConfig({ testTimeout: 120_000, hookTimeout: 180_000 });

/** One migration, or one of the two of a pair. */
const migration = (name: string, more = ''): string => `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata:
  name: ${name}
spec:
  vmiName: vmi-fedora
${more}`;

const receive = (key: string): string => `
  receive:
    migrationID: ${key}
`;

const sendTo = (key: string, address: string): string => `
  sendTo:
    migrationID: ${key}
    connectURL: "${address}"
`;

const POLICY = `
apiVersion: migrations.kubevirt.io/v1alpha1
kind: MigrationPolicy
metadata:
  name: example-migration-policy
spec:
  selectors:
    namespaceSelector:
      hpc-workloads: "True"
    virtualMachineInstanceSelector:
      workload-type: db
  allowAutoConverge: true
  bandwidthPerMigration: 217Mi
  completionTimeoutPerGiB: 23
  allowPostCopy: false
`;

let guests: MovingGuests;
beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: 2, isOneGuest: true });
  await guests.create('vmi-fedora', probe(), { 'workload-type': 'db' });
});
afterAll(() => guests.stop());

const apply = (stdin: string): Promise<string> => guests.host.kubectl.ok('apply -f -', { stdin });

/** Asks for a move; a pair is known by the name of its source's half. */
async function applyMove(name: string): Promise<string> {
  if (!IS_PAIRED) return apply(migration(name));
  const received = await apply(migration(`${name}-target`, receive(name)));
  return received + (await apply(migration(name, sendTo(name, await guests.host.synchronizationAddress()))));
}

describe('kubectl', () => {
  it('moves a guest under the policy that its labels and those of its namespace choose', async () => {
    await guests.host.kubectl.ok('label namespace default hpc-workloads=True');
    await apply(POLICY);
    await applyMove('migration-job');
    const wait = 'wait vmim/migration-job --for=jsonpath={.status.phase}=Succeeded --timeout=90s';
    await guests.host.kubectl.ok(wait);
    const { status } = await guests.migration('migration-job');
    expect(status.migrationState).toMatchObject({
      migrationPolicyName: 'example-migration-policy',
      migrationConfiguration: {
        allowAutoConverge: true,
        bandwidthPerMigration: '217Mi',
        completionTimeoutPerGiB: 23,
        allowPostCopy: false,
      },
    });
    expect(await guests.isWhole('vmi-fedora')).toHaveLength(2);
    expect(await guests.host.kubectl.ok('describe vmim migration-job')).toContain('SuccessfulMigration');
  });

  it('applies the same again, and nothing happens; another needs another name', async () => {
    const applied = await applyMove('migration-job');
    expect(applied.match(/unchanged$/gm)).toHaveLength(IS_PAIRED ? 2 : 1);
    await applyMove('migration-job-2');
    await guests.succeeds('migration-job-2');
    expect(await guests.isWhole('vmi-fedora')).toHaveLength(3);
  });

  it('shows all migrations of a guest', async () => {
    await eventually(async () => {
      const table = await guests.host.kubectl.ok('get vmim -l kubevirt.io/vmi-name=vmi-fedora');
      expect(table.match(/Succeeded/g)).toHaveLength(IS_PAIRED ? 4 : 2);
    });
  });
});

describe('godwit', () => {
  // The command makes one migration, whatever else goes by two.
  if (!IS_PAIRED)
    it('moves a guest as virtctl does', async () => {
      expect(await guests.host.cli('migrate', 'vmi-fedora')).toContain('VM vmi-fedora was scheduled to migrate');
      const [asked] = (await guests.migrations()).filter(({ metadata }) =>
        metadata.name.startsWith('kubevirt-migrate'),
      );
      await guests.succeeds(asked.metadata.name);
      expect(await guests.isWhole('vmi-fedora')).toHaveLength(4);
    });

  it('says which policy holds for a guest, and why', async () => {
    expect(await guests.host.cli('policy', 'explain', 'vmi-fedora')).toContain('example-migration-policy');
  });
});
