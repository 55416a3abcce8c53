import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { JsonObject } from '../../api/meta.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { nodes } from '../resources.ts';
import { Seizures } from './seizures.ts';

const OUT_OF_SERVICE = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };

let scene: ControlScene;
const uids = new Map<string, string>();

beforeEach(async () => {
  scene = new ControlScene((context) => new Seizures(context));
  await scene.start();
  for (const name of ['node-a', 'node-b']) {
    const { metadata } = await scene.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
    uids.set(name, metadata.uid ?? '');
  }
  await scene.create(virtualMachineInstances, {
    metadata: { name: 'web' },
    spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
  });
});
afterEach(() => scene.stop());

const runner = (node: string): JsonObject => ({ node, nodeUID: uids.get(node) ?? '', podUID: `pod on ${node}` });

async function says(status: JsonObject): Promise<void> {
  await scene.patch(virtualMachineInstances, 'web', { status }, 'status');
}

async function taint(name: string): Promise<void> {
  const body = { spec: { taints: [OUT_OF_SERVICE] } };
  await scene.client.patch(nodes, '', name, { type: 'merge', body }, scene.signal);
}

const record = async (): Promise<RightToRun | undefined> =>
  (await scene.get(virtualMachineInstances, 'web')).status?.rightToRun;

describe('the right to run a guest', () => {
  it('is taken from a node that is out of service, and the guest has failed', async () => {
    await says({ phase: 'Running', rightToRun: { epoch: 3, holder: runner('node-a') } });
    await scene.pass(5000);
    expect(await record()).toMatchObject({ epoch: 3, holder: { node: 'node-a' } });
    await taint('node-a');
    await scene.until(async () => expect(await record()).toEqual({ epoch: 4 }));
    const { status } = await scene.get(virtualMachineInstances, 'web');
    expect(status?.phase).toBe('Failed');
    expect(status?.phaseTransitionTimestamps?.at(-1)?.phase).toBe('Failed');
    expect((await scene.events()).at(-1)).toMatch(/^web Warning RightToRunSeized: .* node-a, which is out of service$/);
  });

  it('is taken as well when the guest is heard of after the node', async () => {
    await taint('node-a');
    await says({ phase: 'Running', rightToRun: { epoch: 1, holder: runner('node-a') } });
    await scene.until(async () => expect(await record()).toEqual({ epoch: 2 }));
  });

  it('leaves a guest that has ended as it ended', async () => {
    await says({ phase: 'Succeeded', rightToRun: { epoch: 1, holder: runner('node-a') } });
    await taint('node-a');
    await scene.until(async () => expect(await record()).toEqual({ epoch: 2 }));
    expect((await scene.get(virtualMachineInstances, 'web')).status?.phase).toBe('Succeeded');
  });

  it('waits for a successor that may have been granted it', async () => {
    await says({ phase: 'Running', rightToRun: { epoch: 1, holder: runner('node-a'), successor: runner('node-b') } });
    await taint('node-a');
    await scene.pass(5000);
    expect(await record()).toMatchObject({ epoch: 1 });
    await taint('node-b');
    await scene.until(async () => expect(await record()).toEqual({ epoch: 2 }));
  });

  it('stays with another registration of the same name: that is another word', async () => {
    await says({ phase: 'Running', rightToRun: { epoch: 1, holder: { ...runner('node-a'), nodeUID: 'before' } } });
    await taint('node-a');
    await scene.pass(5000);
    expect(await record()).toMatchObject({ epoch: 1 });
  });

  describe('that goes to another object', () => {
    const FAR = { node: 'node-b', nodeUID: 'far', podUID: 'far-pod' };
    const migrationState = {
      migrationUid: 'source',
      targetRunner: FAR,
      targetState: { virtualMachineInstanceUID: 'other' },
    };
    const reserved = (): JsonObject => ({ epoch: 1, holder: runner('node-a'), successor: FAR, across: true });
    const letter = async () => (await scene.get(virtualMachineInstances, 'web')).status?.migrationState?.sourceLetter;
    const answers = (kind: string): Promise<void> => {
      const about = { epoch: 1, migrationUid: 'source', sourcePodUID: 'pod on node-a', targetPodUID: 'far-pod' };
      return says({ migrationState: { targetLetter: { kind, ...about } } });
    };

    it.each([
      ['refused', { epoch: 2 }, 'Failed'],
      ['taken', { epoch: 2, holder: FAR, across: true }, 'Running'],
    ])('is settled once the successor has %s', async (kind, next, phase) => {
      await says({ phase: 'Running', rightToRun: reserved(), migrationState });
      await taint('node-b');
      await taint('node-a');
      await scene.until(async () =>
        expect(await letter()).toEqual({
          kind: 'please-refuse',
          epoch: 1,
          migrationUid: 'source',
          sourcePodUID: 'pod on node-a',
          targetPodUID: 'far-pod',
        }),
      );
      await scene.pass(5000);
      expect(await record()).toEqual(reserved());
      await answers(kind);
      await scene.until(async () => expect(await record()).toEqual(next));
      expect((await scene.get(virtualMachineInstances, 'web')).status?.phase).toBe(phase);
    });

    it('is settled once the half of the successor has succeeded, whose guest may be over and has no letter', async () => {
      await says({ phase: 'Running', rightToRun: reserved(), migrationState });
      await taint('node-a');
      await scene.until(async () => expect(await letter()).toMatchObject({ kind: 'please-refuse' }));
      await says({ migrationState: { completed: true, targetState: { verdict: { phase: 'Succeeded' } } } });
      await scene.until(async () => expect(await record()).toEqual({ epoch: 2, holder: FAR, across: true }));
    });

    it('is not settled by the half of a successor that is not the one on record', async () => {
      const targetState = { virtualMachineInstanceUID: 'other', verdict: { phase: 'Succeeded' } };
      const another = { ...migrationState, targetRunner: { ...FAR, podUID: 'another' }, targetState };
      await says({ phase: 'Running', rightToRun: reserved(), migrationState: another });
      await taint('node-a');
      await scene.until(async () => expect(await letter()).toMatchObject({ kind: 'please-refuse' }));
      await scene.pass(5000);
      expect(await record()).toEqual(reserved());
    });

    it('is not asked back where its grant is on its way', async () => {
      const about = { epoch: 1, migrationUid: 'source', sourcePodUID: 'pod on node-a', targetPodUID: 'far-pod' };
      const granted = { ...migrationState, sourceLetter: { kind: 'grant', ...about } };
      await says({ phase: 'Running', rightToRun: reserved(), migrationState: granted });
      await taint('node-a');
      await scene.pass(5000);
      expect(await letter()).toMatchObject({ kind: 'grant' });
    });

    it('is taken where nobody was named yet, and who waits is told', async () => {
      await says({ phase: 'Running', rightToRun: { epoch: 1, holder: runner('node-a') }, migrationState });
      await taint('node-a');
      await scene.until(async () => expect(await record()).toEqual({ epoch: 2 }));
      expect(await letter()).toMatchObject({ kind: 'please-refuse', epoch: 1 });
    });

    it('is none of a node that has the name of the one it went to', async () => {
      await says({ phase: 'Running', rightToRun: { epoch: 1, holder: FAR, across: true }, migrationState });
      await taint('node-b');
      await scene.pass(5000);
      expect(await record()).toMatchObject({ epoch: 1 });
    });

    it('is written for who took it, and taken from it, where its node is out of service before it wrote so', async () => {
      const { metadata } = await scene.get(virtualMachineInstances, 'web');
      const coming = {
        migrationUid: 'source',
        targetRunner: runner('node-b'),
        sourceState: { virtualMachineInstanceUID: 'other', epoch: 4, runner: FAR },
        targetState: { virtualMachineInstanceUID: metadata.uid ?? '' },
      };
      await says({ phase: 'WaitingForSync', migrationState: coming });
      await taint('node-b');
      await scene.pass(5000);
      expect(await record()).toBeUndefined();
      await says({ migrationState: { sourceState: { verdict: { phase: 'Succeeded' } } } });
      await scene.until(async () => expect(await record()).toEqual({ epoch: 6 }));
      expect((await scene.get(virtualMachineInstances, 'web')).status?.phase).toBe('Failed');
    });
  });
});
