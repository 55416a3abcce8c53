import { afterAll, beforeAll, expect, it } from 'vitest';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import { migrationPolicies } from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { EqualPolicies } from './equal-policies.ts';
import { makeMigrations, PlayedAgents } from './played-agents.fixture.ts';

/** Policies that no webhook has kept apart: two replicas of it were asked at the same instant. */

const scene = new ControlScene(makeMigrations, (context) => new EqualPolicies(context));
const agents = new PlayedAgents(scene);

beforeAll(async () => {
  await scene.start();
  await agents.addNodes('node-a', 'node-b');
});
afterAll(() => scene.stop());

const make = (name: string, app: string, maxDowntimeMs: number): Promise<MigrationPolicy> =>
  scene.create(migrationPolicies, {
    metadata: { name },
    spec: { selectors: { virtualMachineInstanceSelector: { app } }, maxDowntimeMs },
  });
/** Events of what is in no namespace are in this one. */
const told = async (): Promise<readonly string[]> =>
  (await scene.events('default')).filter((event) => event.includes('SameSelectors')).toSorted();
const word = (loser: string, winner: string): string =>
  `${loser} Warning SameSelectors: the policy "${winner}" has the same selectors, and is older: this one does not count`;

/** The policy that a guest of an app is moved by. */
async function policyOf(app: string, move: string): Promise<string | undefined> {
  const guest = `guest-of-${move}`;
  await agents.addGuest(guest, 'node-a', { metadata: { name: guest, labels: { app } } });
  await agents.move(move, guest);
  await agents.carryOut(move, guest);
  return (await agents.state(guest)).migrationPolicyName;
}

it('the older one counts, and the other one is told so', async () => {
  await make('z-older', 'web', 100);
  await scene.pass(5000);
  await make('a-younger', 'web', 200);
  await make('other', 'db', 300);
  await scene.until(async () => expect(await told()).toEqual([word('a-younger', 'z-older')]));
  expect(await policyOf('web', 'move-1')).toBe('z-older');
  await scene.delete(migrationPolicies, 'z-older');
  await scene.settle();
  expect(await policyOf('web', 'move-2')).toBe('a-younger');
});

it('of two that were made at once the one whose name is first counts', async () => {
  await Promise.all([make('twin-b', 'shop', 100), make('twin-a', 'shop', 200)]);
  await scene.until(async () => expect(await told()).toContain(word('twin-b', 'twin-a')));
  expect(await policyOf('shop', 'move-3')).toBe('twin-a');
});

it('one whose selectors become those of another one is told so, too', async () => {
  await make('first', 'one', 100);
  await make('second', 'two', 100);
  await scene.settle();
  const selectors = { virtualMachineInstanceSelector: { app: 'one' } };
  await scene.patch(migrationPolicies, 'second', { spec: { selectors } });
  await scene.until(async () => expect(await told()).toContain(word('second', 'first')));
});
