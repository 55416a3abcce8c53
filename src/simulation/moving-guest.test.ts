import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TwoNodes } from './two-nodes.fixture.ts';

let nodes: TwoNodes;
beforeEach(async () => {
  nodes = new TwoNodes();
  await nodes.start();
  await nodes.runGuest();
});
afterEach(() => {
  nodes.stop();
  expect(nodes.violations).toEqual([]);
});

describe('a guest that is handed off', () => {
  it('runs on the target, and is gone from the source', async () => {
    const bootId = nodes.model('web-1')?.guest.bootId;
    await nodes.handOff();
    await nodes.guestIs('over', ({ status }) => status?.migrationState?.completed === true);
    const { status } = await nodes.guest();
    expect(status?.migrationState).toMatchObject({ completed: true, mode: 'PreCopy', targetNodeDomainDetected: true });
    expect(status?.migrationState?.failed).toBeUndefined();
    expect(status?.rightToRun?.holder?.node).toBe('node-b');
    expect(nodes.model('web-2')).toMatchObject({ isExecuting: true });
    expect(nodes.model('web-2')?.guest.bootId).toBe(bootId);
    await nodes.until('the source gone', () => nodes.model('web-1')?.end !== undefined);
    await nodes.pass(2000);
    expect((await nodes.pod('web-1')).status?.phase).toBe('Succeeded');
    expect((await nodes.pod('web-2')).status?.phase).toBe('Running');
  });
});
