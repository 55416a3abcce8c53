import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { probe } from '../support/guest-manifests.ts';
import { signsOfLife } from '../support/guests.ts';
import { MovingGuests, type Side } from '../support/moving-guests.ts';

/** What is heard of a guest that moves: one story, wherever it was told. */

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let guests: MovingGuests;
// In another namespace a guest is another object, with a log and a console of its own: pairs are of one guest.
beforeAll(async () => (guests = await MovingGuests.start({ nodes: 2, isOneGuest: true })));
afterAll(() => guests.stop());

/** Nothing is missing of what the guest said, and nothing is there twice. */
function expectWhole(log: string, boot: string): void {
  const signs = signsOfLife(log).filter((sign) => sign.boot === boot);
  expect(signs.length).toBeGreaterThan(2);
  expect(signs.map(({ count }) => count)).toEqual(signs.map((_, index) => (signs[0]?.count ?? 0) + index));
}

/** What a guest has said last in a place. */
function lastSign({ podUID }: Side): string {
  return (guests.host.logs().get(podUID) ?? '').match(/^guest boot=.* count=\d+ /gm)?.at(-1) ?? 'nothing';
}

describe('the log of a guest that moves to another node and back', () => {
  it('is told in order, and followed until the guest ends', async () => {
    await guests.create('diary', probe());
    const boot = guests.bootOf('diary');
    const pods = [await guests.holder('diary')];
    const following = guests.host.startCli('logs', 'diary', '-f');
    await following.printed(boot);
    for (let move = 0; move < 2; move++) {
      await guests.move('diary');
      const side = await guests.holder('diary');
      pods.push(side);
      await following.printed(lastSign(side));
      // Whoever tells may die, and goes on telling when he is back.
      await guests.host.killAgent(side.node);
    }
    expect(new Set(pods.map(({ node }) => node)).size).toBe(2);
    const log = await eventually(() => guests.host.cli('logs', 'diary'), 60_000);
    await following.printed(lastSign(pods.at(-1) as Side));
    expectWhole(log, boot);
    const said = pods.map(({ podUID }) => signsOfLife(guests.host.logs().get(podUID) ?? ''));
    for (const signs of said) expect(signsOfLife(log)).toContainEqual(signs[0]);
    const last = await guests.host.cli('logs', 'diary', '--tail', '20');
    expectWhole(last, boot);
    expect(last.trimEnd().split('\n')).toHaveLength(20);

    await guests.host.cli('stop', 'diary');
    const { code, stdout, stderr } = await following.finished;
    expect([code, stderr]).toEqual([0, '']);
    expectWhole(stdout, boot);
    const all = pods.map(({ podUID }) => guests.host.logs().get(podUID) ?? '').join('');
    // A last line that the guest did not end is ended.
    expect(stdout).toBe(all.endsWith('\n') ? all : `${all}\n`);
  });
});

describe('whoever sits at the console of a guest that moves', () => {
  it('is connected again where it is, until he leaves', async () => {
    await guests.create('talker', probe());
    const boot = guests.bootOf('talker');
    const console = guests.host.startCli('console', 'talker');
    await console.printed('guest boot=');
    for (let move = 0; move < 2; move++) {
      await guests.move('talker');
      const { node } = await guests.holder('talker');
      await console.printed(`talker has moved to ${node}: connected to its console there.`);
      console.child.stdin?.write(`ping after-${move}\r`);
      await console.printed(`pong=after-${move}`);
    }
    // Ctrl+] leaves it.
    console.child.stdin?.write('\u001d');
    const { code, stdout } = await console.finished;
    expect(code).toBe(0);
    expect(new Set(signsOfLife(stdout).map((sign) => sign.boot))).toEqual(new Set([boot]));
    await guests.remove('talker');
  });
});
