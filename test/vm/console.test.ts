import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { probe, virtualMachine } from '../support/guest-manifests.ts';
import { signsOfLife } from '../support/guests.ts';
import { VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => {
  host = await VirtualMachines.start({ nodes: 1 });
  await host.create(virtualMachine('talker', probe()));
  await host.lives('talker');
});
afterAll(() => host.stop());

describe('the console of a machine', () => {
  it('carries words both ways', async () => {
    expect(await host.ask('talker', 'ping hello')).toMatch(/pong=hello/);
    expect(await host.ask('talker', 'memory')).toMatch(/memory=ok checked=1024 bad=0/);
  });

  it('belongs to whoever came last, and the guest does not notice', async () => {
    const { boot } = await host.lives('talker');
    const first = host.startCli('console', 'talker');
    await first.printed('guest boot=');
    const second = host.startCli('console', 'talker');
    await second.printed('guest boot=');
    expect(await first.finished).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^godwit: the console of talker was taken over by another session; .*'godwit console talker' to take it back$/m,
      ),
    });
    // Ctrl+] leaves it.
    second.child.stdin?.write('\u001d');
    expect((await second.finished).code).toBe(0);
    expect((await host.lives('talker')).boot).toBe(boot);
  });

  it('does not hold up a guest whose listener has gone to sleep', async () => {
    const console = host.startCli('console', 'talker');
    await console.printed('guest boot=');
    console.child.kill('SIGSTOP');
    for (let i = 0; i < 3; i++) await host.lives('talker');
    console.child.kill('SIGKILL');
    await console.finished;
    await host.lives('talker');
  });

  it('of a machine that does not exist is a failure in one sentence', async () => {
    const { code, stderr } = await host.runCli('console', 'nobody');
    expect(code).toBe(1);
    expect(stderr).toMatch(/nobody/);
  });
});

describe('the log of a machine', () => {
  it('is what it said, to its last line or from now on', async () => {
    const guest = await host.guest('talker');
    const log = await host.cli('logs', 'talker');
    expect(signsOfLife(log)[0]).toEqual(host.signs(guest)[0]);
    expect((await host.cli('logs', 'talker', '--tail', '3')).trim().split('\n')).toHaveLength(3);
    const following = host.startCli('logs', 'talker', '-f', '--tail', '1');
    await eventually(() => expect(signsOfLife(following.output()).length).toBeGreaterThan(10));
    following.child.kill('SIGINT');
    await following.finished;
  });

  it('is what kubectl logs shows of its pod', async () => {
    const [pod] = (await host.kubectl.json('get pods -l vm.kubevirt.io/name=talker')).items;
    const log = await host.kubectl.ok(`logs ${pod.metadata.name} -c compute --tail=5`);
    expect(signsOfLife(log).length).toBeGreaterThan(0);
  });

  it('is there still when its machine has stopped', async () => {
    const { boot } = await host.lives('talker');
    await host.cli('stop', 'talker');
    await host.isSaidToBe('talker', 'Stopped');
    await host.cli('start', 'talker');
    const again = await host.lives('talker');
    expect(again.boot).not.toBe(boot);
    const boots = new Set(signsOfLife(await host.cli('logs', 'talker')).map((sign) => sign.boot));
    expect(boots).toContain(again.boot);
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(host.assertNeverDoubled()).toBeGreaterThan(10));
});
