import { expect, it } from 'vitest';
import { realClock } from '../../env/real.ts';
import { testEnv } from '../../env/test.ts';
import type { Machine, MachineStatus } from '../../hypervisor/hypervisor.ts';
import { NO_MIGRATION } from '../../hypervisor/migration.fixture.ts';
import { frozenOptions } from '../../migration/policies/options.ts';
import { Copy } from './copy.ts';

/** Adopts the copy of a machine that says of its last one that it is completed. */
function adopted(status: () => MachineStatus): Copy {
  const machine = {
    run: { directory: '/runs/a', instance: 'a' },
    ended: new Promise(() => undefined),
    onEvent: () => () => undefined,
    status: async () => status(),
    migration: {
      ...NO_MIGRATION,
      progress: async () => ({ ...(await NO_MIGRATION.progress()), state: 'completed' }),
      ramBytes: async () => 1024,
      cancel: async () => undefined,
      mirrors: async () => [],
      dropMirrors: async () => undefined,
    },
  } as unknown as Machine;
  return Copy.adopt({
    env: { ...testEnv(), clock: realClock },
    machine,
    options: frozenOptions({}),
    disks: [],
    hooks: { onNews: () => undefined, onStill: () => undefined, listenAgain: () => Promise.reject(new Error()) },
    deadlineMs: () => undefined,
    known: {},
    startedAtMs: undefined,
  });
}

it.each(['running', 'paused', 'disk-error', 'failed'] as const)(
  'takes the copy by which a guest came that is %s for none of its own: there is none, and it stays',
  async (status) => {
    const copy = adopted(() => status);
    await copy.settled;
    expect(copy).toMatchObject({ state: 'failed', failure: { reason: 'AgentRestarted' } });
  },
);

it('takes a copy for its own whose guest stands still for good, though the machine says so a moment later', async () => {
  let looks = 0;
  const copy = adopted(() => (++looks < 3 ? 'paused' : 'finished-migrate'));
  await copy.settled;
  expect(copy.state).toBe('completed');
});
