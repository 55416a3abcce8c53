import { join } from 'node:path';
import { addressErrors } from '../../api/kubevirt/validate-migration.ts';
import { dnsLabelErrors, dnsSubdomainErrors } from '../../api/names.ts';
import { ApiError } from '../../api/status.ts';
import { namespaces } from '../../cluster/resources.ts';
import type { Env } from '../../env/ports.ts';
import { TransportError } from '../../kube/transport.ts';
import { sharedAbortController } from '../../kube/abort.ts';
import { type ClusterConnection, type ClusterOptions, withCluster } from '../cluster-connection.ts';
import { checkOutput, type OutputFormat } from '../cluster-options.ts';
import { UserError } from '../failure.ts';
import { printValue } from '../print-value.ts';
import { Move, type MoveResult } from './move.ts';
import {
  endLines,
  failureText,
  forecastLines,
  forecastValue,
  interruptionText,
  NOTHING_CHANGED,
  obstacleLines,
  whereOf,
} from './move-report.ts';
import { LineView, TerminalView } from './move-view.ts';
import type { MoveRequest } from './seen.ts';

/** `godwit move VM --to-namespace NS | --to-context CTX`. */

export interface MoveCommandOptions extends ClusterOptions {
  readonly toNamespace?: string;
  readonly toContext?: string;
  readonly toKubeconfig?: string;
  /** What the machine is called at the target. */
  readonly name?: string;
  readonly connectUrl?: string;
  readonly mapStorageClass?: Readonly<Record<string, string>>;
  readonly mapNetwork?: Readonly<Record<string, string>>;
  readonly dryRun?: boolean;
  /** Of a dry run. */
  readonly output?: OutputFormat;
}

type Print = (line: string) => void;

/** Where the live view is drawn, and how people stop it. */
export interface MoveTerminal {
  readonly output: NodeJS.WriteStream;
  /** Aborts when they do. */
  readonly interrupted: AbortSignal;
}

/** Moves a machine, or says what that would take. Rejects where it cannot, or does not, and says what to do. */
export async function move(
  name: string,
  options: MoveCommandOptions,
  env: Env,
  print: Print,
  terminal: MoveTerminal,
): Promise<void> {
  const { toNamespace, toContext, toKubeconfig } = options;
  if (toNamespace === undefined && toContext === undefined && toKubeconfig === undefined)
    throw new UserError('say where to: --to-namespace NS, --to-context CTX or --to-kubeconfig FILE', { exitCode: 2 });
  checkOutput(options);
  checkNames(options);
  await withCluster(options, env, async (source) => {
    await seenBy(source, terminal.interrupted);
    if (toContext === undefined && toKubeconfig === undefined)
      return moveBetween(name, options, env, print, terminal, { source, target: source });
    return withCluster(targetOf(options), env, async (target) => {
      await seenBy(target, terminal.interrupted);
      await moveBetween(name, options, env, print, terminal, { source, target });
    });
  });
}

/** What no server takes. */
function checkNames({ name, toNamespace, connectUrl }: MoveCommandOptions): void {
  const wrong = [
    ...(name === undefined ? [] : dnsSubdomainErrors(name).map((why) => `--name ${name}: ${why}`)),
    ...(toNamespace === undefined
      ? []
      : dnsLabelErrors(toNamespace).map((why) => `--to-namespace ${toNamespace}: ${why}`)),
    ...(connectUrl === undefined
      ? []
      : addressErrors(connectUrl, '').map(({ message }) => `--connect-url ${connectUrl}: ${message}`)),
  ];
  if (wrong.length > 0) throw new UserError(wrong.join('\n'), { exitCode: 2 });
}

/** Asks a server anything, so that whoever cannot be reached, or does not know us, is called by its name. */
async function seenBy({ client }: ClusterConnection, signal: AbortSignal): Promise<void> {
  try {
    await client.find(namespaces, '', 'kube-system', signal);
  } catch (error) {
    if (signal.aborted) throw interrupted(NOTHING_CHANGED, error);
    // Who may not look is known, and not everybody may.
    if (!(error instanceof ApiError && error.code === FORBIDDEN)) throw error;
  }
}

const FORBIDDEN = 403;

/** How the target cluster is found: in another file, or in another context of the same one. */
export function targetOf({ kubeconfig, dataDir, toKubeconfig, toContext }: MoveCommandOptions): ClusterOptions {
  const file = toKubeconfig ?? kubeconfig;
  return {
    ...(file === undefined ? {} : { kubeconfig: file }),
    ...(file !== undefined || dataDir === undefined ? {} : { dataDir }),
    ...(toContext === undefined ? {} : { context: toContext }),
  };
}

interface Connections {
  readonly source: ClusterConnection;
  readonly target: ClusterConnection;
}

async function moveBetween(
  name: string,
  options: MoveCommandOptions,
  env: Env,
  print: Print,
  { output, interrupted: left }: MoveTerminal,
  { source, target }: Connections,
): Promise<void> {
  const request = requestOf(name, options, { source, target });
  const { from, to } = request;
  if (source === target && from.namespace === to.namespace)
    throw new UserError(
      `${name} is in ${from.namespace} already; 'godwit migrate ${name}' moves it to another node, and --to-namespace to another namespace`,
      { exitCode: 2 },
    );
  const view = output.isTTY ? new TerminalView(output) : new LineView(print);
  const mover = new Move({ request, source: source.client, target: target.client, env, view, print });
  const stopping = sharedAbortController();
  const stop = (): void => stopping.abort();
  left.addEventListener('abort', stop);
  if (left.aborted) stop();
  let result: MoveResult;
  try {
    if (options.dryRun === true) return await foretell(mover, request, options.output, print, stopping.signal);
    result = await mover.run(stopping.signal);
  } catch (error) {
    if (stopping.signal.aborted) throw interrupted(interruptionText(mover.stage, request), error);
    throw error instanceof TransportError && source !== target ? unreachable(error, { source, target }) : error;
  } finally {
    stop();
    left.removeEventListener('abort', stop);
  }
  report(result, request, print);
}

function requestOf(name: string, options: MoveCommandOptions, { source, target }: Connections): MoveRequest {
  const { namespace } = source;
  return {
    from: { namespace, name },
    to: { namespace: options.toNamespace ?? namespace, name: options.name ?? name },
    storageClasses: new Map(Object.entries(options.mapStorageClass ?? {})),
    networks: new Map(Object.entries(options.mapNetwork ?? {})),
    connectURL: options.connectUrl,
    toCluster: source === target ? undefined : (options.toContext ?? target.access.server),
    toServer: source === target ? undefined : target.access.server,
    back: source === target ? clusterFlags(options) : backOf(options, source.access.context),
  };
}

/** What is said on the command line to come from the target to where the guest is now. */
export function backOf(options: MoveCommandOptions, current: string | undefined): string {
  const { dataDir, toKubeconfig, context = current } = options;
  const kubeconfig = options.kubeconfig ?? (dataDir === undefined ? 'FILE' : join(dataDir, 'kubeconfig'));
  return [
    clusterFlags(targetOf(options)),
    ...(toKubeconfig === undefined ? [] : [` --to-kubeconfig ${kubeconfig}`]),
    ...(context === undefined ? [] : [` --to-context ${context}`]),
  ].join('');
}

function clusterFlags({ kubeconfig, dataDir, context }: ClusterOptions): string {
  const flags = { 'data-dir': dataDir, kubeconfig, context };
  return Object.entries(flags)
    .map(([name, value]) => (value === undefined ? '' : ` --${name} ${value}`))
    .join('');
}

async function foretell(
  mover: Move,
  request: MoveRequest,
  output: OutputFormat | undefined,
  print: Print,
  signal: AbortSignal,
): Promise<void> {
  const prospect = await mover.prospect(signal);
  if (!printValue(forecastValue(prospect, request), output, print))
    for (const line of forecastLines(prospect, request)) print(line);
  if (prospect.obstacles.length > 0)
    throw new UserError(
      `${request.from.name} could not move to ${whereOf(request)}; nothing was changed: do first what is said below each thing that is in the way`,
    );
}

function report(result: MoveResult, request: MoveRequest, print: Print): void {
  const { prospect } = result;
  if (result.kind === 'blocked')
    throw new UserError(
      [
        `${request.from.name} cannot move to ${whereOf(request)}; nothing was changed:`,
        ...obstacleLines(prospect),
      ].join('\n'),
    );
  if (result.kind === 'failed') throw new UserError(failureText(result, request));
  for (const line of endLines(prospect, request)) print(line);
}

function unreachable(error: TransportError, { source, target }: Connections): UserError {
  return new UserError(
    `cannot talk to one of the API servers at ${source.access.server} and ${target.access.server} (${error.message}); what was made stays, and the same command goes on`,
    { cause: error },
  );
}

function interrupted(text: string, cause: unknown): UserError {
  return new UserError(text, { exitCode: INTERRUPTED, cause });
}

const INTERRUPTED = 130;
