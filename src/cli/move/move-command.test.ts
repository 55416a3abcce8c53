import { expect, it } from 'vitest';
import { realEnv } from '../../env/real.ts';
import type { UserError } from '../failure.ts';
import type { MoveStage } from './move.ts';
import { backOf, move, targetOf } from './move-command.ts';
import { interruptionText } from './move-report.ts';

/** Which clusters the command line means, and what is said to whoever stops a move. */

it.each([
  [
    'another context of the file that was named',
    { kubeconfig: 'k', toContext: 'west' },
    { kubeconfig: 'k', context: 'west' },
  ],
  ['another context of a data directory', { dataDir: 'd', toContext: 'west' }, { dataDir: 'd', context: 'west' }],
  ['another file, wherever the guest is', { dataDir: 'd', toKubeconfig: 'w' }, { kubeconfig: 'w' }],
])('moves to %s', (_, options, target) => expect(targetOf(options)).toEqual(target));

it.each([
  [{ dataDir: 'd', toContext: 'west', context: 'east' }, ' --data-dir d --context west --to-context east'],
  [{ dataDir: 'd', toKubeconfig: 'w' }, ' --kubeconfig w --to-kubeconfig d/kubeconfig --to-context now'],
  [{ kubeconfig: 'k', toContext: 'west' }, ' --kubeconfig k --context west --to-context now'],
])('comes back from where %o led', (options, flags) => expect(backOf(options, 'now')).toBe(flags));

it.each<[MoveStage, string]>([
  [{ kind: 'looking' }, 'stopped: nothing was changed'],
  [
    { kind: 'making', id: 'x1' },
    'stopped: nothing moves; the same command goes on, and what was made already in west has the label godwit.dev/move=x1',
  ],
  [
    { kind: 'moving', halves: { key: 'k', send: 's1', receive: 'r1' } },
    "stopped: the move goes on by itself; the same command follows it again, 'kubectl delete vmim s1 -n east' calls it off",
  ],
  [
    { kind: 'removing', id: 'x1' },
    'stopped: the move failed, and the guest goes on in east; what is not removed yet has the label godwit.dev/move=x1, on both sides',
  ],
])('says to whoever stops it when %o what goes on', (stage, text) => {
  const [from, to] = [
    { namespace: 'east', name: 'web' },
    { namespace: 'west', name: 'web' },
  ];
  expect(interruptionText(stage, { from, to })).toBe(text);
});

it('ends with 130 when it is stopped, also before it has heard of the server', async () => {
  const options = { server: 'https://127.0.0.1:1', kubeconfig: '/dev/null', toNamespace: 'west' };
  const terminal = { output: process.stdout, interrupted: AbortSignal.abort() };
  const failure: unknown = await move('web', options, realEnv('error'), () => undefined, terminal).catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({
    name: 'UserError',
    exitCode: 130,
    message: 'stopped: nothing was changed',
  } satisfies Partial<UserError>);
});

it('prints for programs what it would do, and nothing else', async () => {
  const terminal = { output: process.stdout, interrupted: new AbortController().signal };
  const options = { toNamespace: 'west', output: 'json' } as const;
  await expect(move('web', options, realEnv('error'), () => undefined, terminal)).rejects.toMatchObject({
    exitCode: 2,
  });
});
