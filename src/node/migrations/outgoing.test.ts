import { beforeEach, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { seededRandom, silentLogger } from '../../env/test.ts';
import { HypervisorError } from '../../hypervisor/hypervisor.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { MachineFact } from '../../migration/right-to-run/view.ts';
import type { Machines } from '../guests/machines.ts';
import type { Outcome } from '../guests/scene.ts';
import { CopyScene, MIB } from './copy.fixture.ts';
import type { CredentialFiles } from './copy-options.ts';
import { Outgoing } from './outgoing.ts';

const runner = (node: string, podUID: string) => ({ node, nodeUID: `uid-${node}`, podUID });
const SELF = runner('node-a', 'pod-a');
const TARGET = runner('node-b', 'pod-b');
const ATTEMPT: Attempt = {
  epoch: 1,
  source: SELF,
  target: TARGET,
  sourceMigrationUID: 'move',
  targetMigrationUID: 'move',
};
const MACHINE = { spec: SMALL_MACHINE, ramBytes: 1024 * MIB };
const CREDENTIALS = { authorityPem: 'a', certificatePem: 'c', keyPem: 'k', peer: 'target' };

const GUEST: VirtualMachineInstance = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'web' },
  spec: { domain: { devices: {} } },
  status: {
    phase: 'Running',
    migrationState: {
      migrationUid: 'move',
      sourceNode: 'node-a',
      sourcePod: 'web-1',
      targetNode: 'node-b',
      targetPod: 'web-2',
      targetNodeAddress: 'node-b',
      targetDirectMigrationNodePorts: { '7000': 0 },
      targetRunner: TARGET,
    },
    rightToRun: { epoch: 1, holder: SELF },
  },
};

/** What the protocol came to for the source's pod. */
function outcome(standing: Standing, successor?: typeof TARGET, machine: MachineFact = 'running'): Outcome {
  const record = { epoch: 1, holder: SELF, ...(successor ? { successor } : {}) };
  const view = { self: SELF, standing, record, machine };
  return { podUID: SELF.podUID, guest: GUEST, pod: { metadata: { name: 'web-1' } }, view } as unknown as Outcome;
}

const HOLDING = { kind: 'holding', epoch: 1, mustContinue: false, isCompleted: false } as const;
const RESERVED = { ...HOLDING, reserved: ATTEMPT };

let scene: CopyScene;
let outgoing: Outgoing;
/** The same for an agent that was started anew. */
let newOutgoing: () => Outgoing;
/** What the target's machine is said to be. */
let there: MachineFact;
let put: (files: CredentialFiles) => void;
let filesCount: number;
/** Why the machine here cannot be described. */
let problem: Error | undefined;

/** The target was opened, and the guest is reserved for it: the credentials of the copy are being written. */
beforeEach(async () => {
  scene = await CopyScene.open();
  there = 'inmigrate';
  problem = undefined;
  filesCount = 1;
  const { memoryPort } = await scene.soon(
    scene.target.migration.listen({
      host: 'node-b',
      firstPort: 100,
      lastPort: 199,
      tls: { directory: '/tls', peer: 'source' },
      disks: [],
      allowsPostCopy: false,
      channels: undefined,
    }),
  );
  const opened = { host: 'node-b', memoryPort, isPostCopyPossible: false, machine: MACHINE, credentials: CREDENTIALS };
  newOutgoing = () =>
    new Outgoing({
      env: { clock: scene.clock, random: seededRandom(1), log: silentLogger },
      peers: { exchange: async () => ({ machine: there, letters: [], opened }) },
      credentials: { write: () => new Promise((resolve) => (put = resolve)) },
      cpus: 1,
      machines: { get: () => scene.source } as unknown as Machines,
      describe: async () => {
        if (problem) throw problem;
        return { machine: MACHINE, copiedDisks: [], diskFiles: new Map() };
      },
      advance: () => undefined,
      enqueue: () => undefined,
      tell: () => undefined,
    });
  outgoing = newOutgoing();
  outgoing.tend(outcome(HOLDING));
  await scene.pass(100);
  expect(outgoing.canSend(SELF.podUID, ATTEMPT)).toBe(true);
  outgoing.tend(outcome(RESERVED, TARGET));
  await scene.pass(100);
});

const written = (): void => put({ tls: { directory: '/tls', peer: 'target' }, remove: async () => void filesCount-- });

it('begins no copy any more once it was called off, however late its credentials come', async () => {
  await scene.soon(outgoing.cancel(SELF.podUID));
  written();
  await scene.pass(60_000);
  expect((await scene.soon(scene.source.migration.progress())).state).toBe('none');
  expect(scene.executing).toEqual([1, 0]);
  expect(filesCount).toBe(0);
  expect(outgoing.hasFailed(SELF.podUID, ATTEMPT)).toBe(true);
});

it('asks for no target while its machine does not answer, and for one once it does', async () => {
  const next = newOutgoing();
  next.tend(outcome(HOLDING, undefined, 'unknown'));
  await scene.pass(30_000);
  expect(next.canSend(SELF.podUID, ATTEMPT)).toBe(false);
  expect(next.hasFailed(SELF.podUID, ATTEMPT)).toBe(false);
  problem = new HypervisorError('Unreachable', 'QEMU has not answered');
  next.tend(outcome(HOLDING));
  await scene.pass(2000);
  expect(next.hasFailed(SELF.podUID, ATTEMPT)).toBe(false);
  problem = undefined;
  next.tend(outcome(HOLDING));
  await scene.pass(100);
  expect(next.canSend(SELF.podUID, ATTEMPT)).toBe(true);
});

it('takes over the copy of a machine that does not answer once it does', async () => {
  written();
  await scene.pass(10);
  const next = newOutgoing();
  scene.sourceModel.isSilent = true;
  next.tend(outcome(RESERVED, TARGET, 'unknown'));
  await scene.pass(30_000);
  expect(next.hasFailed(SELF.podUID, ATTEMPT)).toBe(false);
  scene.sourceModel.isSilent = false;
  next.tend(outcome(RESERVED, TARGET));
  await scene.pass(1000);
  expect(next.facts(SELF.podUID, { migrationUid: 'move' }).copy).toBeDefined();
});

it.each<[MachineFact, boolean]>([
  ['paused', false],
  ['unknown', true],
  ['inmigrate', true],
])('waits no longer than a while for a target whose machine is %s: %j', async (fact, isGivenUp) => {
  written();
  await scene.pass(60_000);
  expect((await scene.soon(scene.source.migration.progress())).state).toBe('completed');
  there = fact;
  for (let seconds = 0; seconds < 20; seconds++) {
    await outgoing.refresh(SELF.podUID, RESERVED, { fact: 'postmigrate' });
    await scene.pass(1000);
    if (seconds < 10) expect(outgoing.hasFailed(SELF.podUID, ATTEMPT)).toBe(false);
  }
  expect(outgoing.hasFailed(SELF.podUID, ATTEMPT)).toBe(isGivenUp);
});
