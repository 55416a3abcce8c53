import { expect, it } from 'vitest';
import { backOf, targetOf } from './move-command.ts';

/** Which clusters the command line means. */

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
