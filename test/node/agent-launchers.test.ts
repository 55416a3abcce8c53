import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/api/meta.ts';
import { NAMESPACE } from '../../src/control/control.fixture.ts';
import { realConnector } from '../../src/env/real-connector.ts';
import { realDiskFiles } from '../../src/env/real-disk-files.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import { realClock } from '../../src/env/real.ts';
import { silentLogger } from '../../src/env/test.ts';
import { endLauncher } from '../../src/hypervisor/launcher/launcher-processes.ts';
import { Launcher } from '../../src/hypervisor/launcher/launcher.ts';
import type { LauncherEnd } from '../../src/hypervisor/launcher/wire.ts';
import { virtualMachineInstances } from '../../src/kube/kubevirt-resources.ts';
import { type LauncherPod, type LauncherPodStatus, launcherPods } from '../../src/node/guests/launcher-pod.ts';
import { Launchers } from '../../src/node/guests/launchers.ts';
import { eventually } from '../support/eventually.ts';
import { PROGRAM, UNPRIVILEGED, Workbench } from '../support/qemu.ts';
import { killMachines, pidOf, QemuScene } from './qemu-scene.ts';

/** The agent of a kubelet's node: the test is the kubelet, and its containers are launchers in this process. */

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

class KubeletScene extends QemuScene {
  override ports(): ReturnType<QemuScene['ports']> {
    const launchers = new Launchers({
      clock: realClock,
      connector: realConnector,
      files: realDiskFiles,
      directory: join(this.directory, 'launchers'),
      user: UNPRIVILEGED,
    });
    const processes = launchers.processes(realProcesses);
    const hypervisor = Workbench.hypervisor(this.bench.version, realConnector, PROGRAM, processes);
    return { ...super.ports(), hypervisor, launchers };
  }

  pod(name: string): Promise<LauncherPod> {
    return this.get(launcherPods, name);
  }

  /** Says how a pod is, as its kubelet would. */
  async say(name: string, isReady: boolean, status: LauncherPodStatus): Promise<void> {
    const ready = isReady ? 'True' : 'False';
    const conditions = [{ type: 'ContainersReady', status: ready }];
    const state = isReady ? { running: { startedAt: '2026-01-01T00:00:00Z' } } : {};
    const container = { name: 'compute', image: 'i', imageID: '', ready: isReady, restartCount: 0, state };
    const body = { status: { ...status, conditions, containerStatuses: [container] } };
    const patch = { type: 'strategic' as const, body: body as unknown as JsonObject };
    await this.client.patch(launcherPods, NAMESPACE, name, patch, this.signal, { subresource: 'status' });
  }
}

let bench: Workbench;
let scene: KubeletScene;
const podUIDs: string[] = [];
beforeAll(async () => {
  bench = await Workbench.open();
  scene = new KubeletScene(bench);
  await scene.start();
}, 120_000);
afterAll(async () => {
  await scene.stop();
  await killMachines(podUIDs);
  bench.close();
});

/** A pod that its kubelet runs. */
interface Running {
  readonly uid: string;
  readonly name: string;
  readonly launcher: Launcher;
  readonly ended: Promise<LauncherEnd>;
}

/** Makes a guest, and runs its pod. */
async function run(beforeStart?: (uid: string) => Promise<void>): Promise<Running> {
  await scene.makeGuest();
  const { metadata } = await scene.bind();
  const { uid = '', name = '' } = metadata;
  podUIDs.push(uid);
  const directory = join(scene.directory, 'launchers');
  // An agent makes it when it starts.
  await scene.until(() => expect(existsSync(directory)).toBe(true));
  const launcher = new Launcher({
    log: silentLogger,
    processes: { spawnDetached: (spec) => realProcesses.spawnDetached({ ...spec, user: UNPRIVILEGED }) },
    path: join(directory, `${uid}.sock`),
    program: PROGRAM,
    directory: join(scene.directory, 'runs', uid),
  });
  const ended = launcher.run();
  // Nothing is started on the word of the pod's node alone.
  await scene.pass(2000, 100);
  expect(await pidOf(uid)).toBeUndefined();
  await beforeStart?.(uid);
  await scene.say(name, true, { phase: 'Running' });
  await scene.phaseBecomes('Running');
  return { uid, name, launcher, ended };
}

const gateOf = ({ status }: LauncherPod): string =>
  (status?.conditions ?? [])
    .filter(({ type }) => type === 'kubevirt.io/virtual-machine-unpaused')
    .map((each) => `${each.status} ${each.reason}`)
    .join();

/** Deletes the guest; its kubelet lets the pod go once its container has ended. */
async function remove({ name, launcher, ended }: Running): Promise<LauncherEnd> {
  await scene.delete(virtualMachineInstances, 'web');
  await scene.until(async () => {
    const [pod] = await scene.list(launcherPods);
    if (pod && pod.metadata.deletionTimestamp === undefined && pod.status?.phase === 'Running')
      throw new Error('the pod is not being deleted');
  });
  launcher.terminate();
  let end: LauncherEnd | undefined;
  void ended.then((it) => (end = it));
  await scene.until(() => expect(end).toBeDefined());
  await scene.client
    .delete(launcherPods, NAMESPACE, name, scene.signal, { gracePeriodSeconds: 0 })
    .catch(() => undefined);
  await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
  return end ?? { exitCode: -1, message: '' };
}

describe('a guest in the pod of a kubelet', () => {
  it('is started by its launcher, outlives its agent, and ends before its pod does', async () => {
    const running = await run();
    const pid = await pidOf(running.uid);
    expect(pid).toBeDefined();
    await scene.until(async () => expect(gateOf(await scene.pod(running.name))).toBe('True NotPaused'));
    await scene.stopAgent();
    await scene.startAgent();
    await scene.agent?.access.pause(NAMESPACE, 'web');
    await scene.until(async () => expect(gateOf(await scene.pod(running.name))).toBe('False Paused'));
    await scene.agent?.access.unpause(NAMESPACE, 'web');
    await scene.until(async () => expect(gateOf(await scene.pod(running.name))).toBe('True NotPaused'));
    expect(await pidOf(running.uid)).toBe(pid);
    // What the kubelet says of its pod is left alone.
    expect((await scene.pod(running.name)).status?.conditions?.map(({ type }) => type)).toContain('ContainersReady');
    expect(await remove(running)).toMatchObject({ exitCode: 0 });
    expect(await pidOf(running.uid)).toBeUndefined();
  }, 120_000);
  it('is shut down in order where its kubelet ends the pod by itself, though its agent was away then', async () => {
    const running = await run();
    await scene.stopAgent();
    // While its machine runs, a launcher stays.
    running.launcher.terminate();
    await scene.startAgent();
    await scene.phaseBecomes('Succeeded');
    expect(await running.ended).toMatchObject({ exitCode: 0 });
    await scene.until(async () =>
      expect(await scene.events()).toContainEqual(expect.stringMatching(/^web Warning EndedByKubelet: /)),
    );
    await scene.say(running.name, false, { phase: 'Failed', reason: 'Evicted' });
    await remove(running);
  }, 120_000);
  it('whose QEMU is killed has failed, and its pod with it, also for an agent that came later, and while a stranger shows its mark', async () => {
    let stranger: ChildProcess | undefined;
    const running = await run(async (uid) => {
      const wait = 'setInterval(() => undefined, 1e9)';
      stranger = spawn(process.execPath, ['-e', wait, `null,id=instance-${uid}`], { stdio: 'ignore' });
      await once(stranger, 'spawn');
    });
    await scene.stopAgent();
    await scene.startAgent();
    // It knows its machines by then.
    await scene.agent?.access.pause(NAMESPACE, 'web');
    process.kill((await pidOf(running.uid, join(scene.directory, 'runs', running.uid))) ?? 0, 'SIGKILL');
    await scene.phaseBecomes('Failed');
    stranger?.kill('SIGKILL');
    let end: LauncherEnd | undefined;
    void running.ended.then((it) => (end = it));
    await scene.until(() =>
      expect(end).toMatchObject({ exitCode: 1, message: expect.stringContaining('SIGKILL') as string }),
    );
    await scene.say(running.name, false, { phase: 'Failed' });
    await remove(running);
  }, 120_000);
  it('has a command for a launcher, which ends as it is told', async () => {
    const path = join(bench.directory, 'command.sock');
    const child = spawn(process.execPath, [main, 'launcher', '--socket', path, '--directory', bench.directory], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const closed = once(child, 'close');
    await eventually(() =>
      endLauncher(realConnector, realClock, path, { exitCode: 1, message: 'Failed: it was killed' }),
    );
    expect(await closed).toEqual([1, null]);
    expect(said).toContain('Failed: it was killed');
  }, 120_000);
});
