import { effectiveRunStrategy } from '../api/kubevirt/run-strategy.ts';
import { ApiError } from '../api/status.ts';
import type { Env } from '../env/ports.ts';
import { virtualMachines } from '../kube/kubevirt-resources.ts';
import {
  ask,
  type ClusterConnection,
  type ClusterOptions,
  subresourcePath,
  wholeText,
  withCluster,
} from './cluster-connection.ts';
import { UserError } from './failure.ts';
import { withRemedy } from './power-remedies.ts';

/** `godwit start|stop|restart|pause|unpause`: what virtctl does by the same names. */

export interface PowerCommandOptions extends ClusterOptions {
  readonly dryRun?: boolean;
  /** Of start: the guest is held before its first instruction. */
  readonly paused?: boolean;
  /** Of stop and restart: only together. */
  readonly force?: boolean;
  readonly gracePeriod?: number;
}

type Print = (line: string) => void;

/** Asks for a machine to be started, stopped or restarted. */
export async function changePower(
  action: 'start' | 'stop' | 'restart',
  name: string,
  options: PowerCommandOptions,
  env: Env,
  print: Print,
): Promise<void> {
  const { force = false, gracePeriod, paused } = options;
  if (force !== (gracePeriod !== undefined))
    throw new UserError('--force and --grace-period go together: give both, or neither', { exitCode: 2 });
  const grace = action === 'stop' ? { gracePeriod } : { gracePeriodSeconds: gracePeriod };
  await withCluster(options, env, async (connection) => {
    const path = subresourcePath(connection.namespace, 'virtualmachines', name, action);
    const body = { ...(paused ? { paused } : {}), ...(force ? grace : {}), ...dryRunOf(options, print) };
    await put(connection, path, body).catch((error: unknown) => {
      throw withRemedy(error, name);
    });
  });
  print(`VM ${name} was scheduled to ${action}`);
}

const KINDS: Readonly<Record<string, 'vm' | 'vmi'>> = {
  vm: 'vm',
  vms: 'vm',
  virtualmachine: 'vm',
  virtualmachines: 'vm',
  vmi: 'vmi',
  vmis: 'vmi',
  virtualmachineinstance: 'vmi',
  virtualmachineinstances: 'vmi',
};

/** Holds a guest where it is, or lets it go on. The name may stand after the kind, as virtctl wants it. */
export async function changePause(
  action: 'pause' | 'unpause',
  words: readonly string[],
  options: PowerCommandOptions,
  env: Env,
  print: Print,
): Promise<void> {
  const [kindWord, name] = words.length === 1 ? ['vm', words[0] ?? ''] : [words[0] ?? '', words[1] ?? ''];
  const lower = kindWord.toLowerCase();
  const kind = Object.hasOwn(KINDS, lower) ? KINDS[lower] : undefined;
  if (kind === undefined)
    throw new UserError(`${JSON.stringify(kindWord)} is neither vm nor vmi; give one of them, or the name alone`, {
      exitCode: 2,
    });
  await withCluster(options, env, async (connection) => {
    const path = subresourcePath(connection.namespace, 'virtualmachineinstances', name, action);
    try {
      await put(connection, path, dryRunOf(options, print));
    } catch (error) {
      if (kind === 'vm' && error instanceof ApiError && error.code === 404)
        throw await missingGuest(connection, name, error);
      throw withRemedy(error, name);
    }
  });
  print(`VMI ${name} was scheduled to ${action}`);
}

/** Why a machine has no guest; in terms of the machine, which is what was asked about. */
export async function missingGuest(
  { client, namespace }: ClusterConnection,
  name: string,
  cause: ApiError,
): Promise<UserError> {
  const machine = await client.find(virtualMachines, namespace, name, new AbortController().signal);
  if (!machine)
    return new UserError(
      `there is no virtual machine ${name} in namespace ${namespace}; 'kubectl get vm -A' lists all there are`,
      { cause },
    );
  const isHalted = effectiveRunStrategy(machine.spec) === 'Halted';
  const fix = isHalted ? `start it with 'godwit start ${name}'` : 'wait until it does';
  return new UserError(`the virtual machine ${namespace}/${name} does not run; ${fix}`, { cause });
}

/** Asks for something to be done. Rejects with ApiError. */
export async function put(connection: ClusterConnection, path: string, body: object): Promise<void> {
  const response = await ask(connection, 'PUT', path, { body, signal: new AbortController().signal });
  await wholeText(response.body);
}

/** What the body says of a dry run, which is said to the user, too. */
export function dryRunOf({ dryRun }: Pick<PowerCommandOptions, 'dryRun'>, print: Print): object {
  if (!dryRun) return {};
  print('Dry Run execution');
  return { dryRun: ['All'] };
}
