import type { Env } from '../env/ports.ts';
import { ask, type ClusterOptions, subresourcePath, wholeText, withCluster } from './cluster-connection.ts';
import { UserError } from './failure.ts';
import { dryRunOf } from './machine-power.ts';

/** `godwit reclaim`: the one override of the right to run; see docs/switchover.md. */

export interface ReclaimOptions extends ClusterOptions {
  readonly dryRun?: boolean;
  readonly iHaveFencedTheOtherSide?: boolean;
  readonly keep?: string;
  readonly afresh?: boolean;
}

type Print = (line: string) => void;

/**
 * Brings a guest back that went, or may have gone, to another namespace or cluster where nothing of it can run any more; or
 * says which copy of one counts that is of this cluster alone.
 */
export async function reclaim(name: string, options: ReclaimOptions, env: Env, print: Print): Promise<void> {
  const { keep, afresh } = options;
  const isWithin = keep !== undefined || afresh === true;
  if (options.iHaveFencedTheOtherSide !== true)
    throw new UserError(
      isWithin
        ? `the guest of ${name} may run ${keep === undefined ? 'on a node' : `elsewhere than on ${keep}`}: make sure that it does not, ` +
            'nor ever will (the machine is off), then say so with --i-have-fenced-the-other-side'
        : `the guest of ${name} may run at the other side: make sure that it does not, nor ever will (its machine is off, its ` +
            'VirtualMachine is halted or deleted), then say so with --i-have-fenced-the-other-side',
      { exitCode: 2 },
    );
  await withCluster(options, env, async (connection) => {
    const path = subresourcePath(connection.namespace, 'virtualmachines', name, 'reclaim');
    const body = { fenced: true, keep, afresh, ...dryRunOf(options, print) };
    const response = await ask(connection, 'PUT', path, { body, signal: new AbortController().signal });
    const { message } = JSON.parse(await wholeText(response.body)) as { message: string };
    print(`VM ${name} was reclaimed: ${message}`);
    if (isWithin) return;
    print(
      'Delete or halt the VirtualMachine of the other side before its machines come back: it would start there again.',
    );
  });
}
