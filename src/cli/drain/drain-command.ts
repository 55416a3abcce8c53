import { humanDuration } from '../../api/human-duration.ts';
import { nodes } from '../../cluster/resources.ts';
import type { Env } from '../../env/ports.ts';
import { sharedAbortController } from '../../kube/abort.ts';
import type { Client } from '../../kube/client.ts';
import { type ClusterOptions, withCluster } from '../cluster-connection.ts';
import { checkOutput, type OutputFormat } from '../cluster-options.ts';
import { UserError } from '../failure.ts';
import { printValue } from '../print-value.ts';
import { Drain, type DrainResult } from './drain.ts';
import { type DrainPicture, type DrainView, LineView, summaryOf, TerminalView } from './drain-view.ts';
import { type Forecast, forecast, forecastLines, stayersOf } from './forecast.ts';

/** `godwit drain|uncordon NODE`. */

export interface DrainCommandOptions extends ClusterOptions {
  readonly dryRun?: boolean;
  /** Of a dry run. */
  readonly output?: OutputFormat;
  /** For how long to go on; for ever where it is 0. */
  readonly timeout?: number;
  readonly force?: boolean;
  readonly deleteEmptydirData?: boolean;
}

type Print = (line: string) => void;

/** Where the live view is drawn, and how people stop it. */
export interface DrainTerminal {
  readonly output: NodeJS.WriteStream;
  /** Aborts when they do. */
  readonly interrupted: AbortSignal;
}

/** Empties a node, or says what that would do. Rejects where it goes no further, and says what to do. */
export async function drain(
  name: string,
  options: DrainCommandOptions,
  env: Env,
  print: Print,
  terminal: DrainTerminal,
): Promise<void> {
  checkOutput(options);
  await withCluster(options, env, async ({ client }) => {
    await requireNode(client, name);
    const rules = { force: options.force === true, deleteEmptydirData: options.deleteEmptydirData === true };
    if (options.dryRun === true) {
      const foreseen = await forecast({ client, env, node: name, ...rules });
      if (!printValue(foreseen, options.output, print)) for (const line of forecastLines(name, foreseen)) print(line);
      return mustBecomeEmpty(name, foreseen);
    }
    const { output, interrupted } = terminal;
    const view = new Remembered(output.isTTY ? new TerminalView(name, output) : new LineView(print));
    const stopping = sharedAbortController();
    const late = lateness(env, options.timeout ?? 0, stopping.signal);
    const stop = (): void => stopping.abort();
    for (const signal of [interrupted, late]) signal.addEventListener('abort', stop);
    if (interrupted.aborted) stop();
    let result: DrainResult | undefined;
    try {
      result = await new Drain({ client, env, node: name, view, print, ...rules }).run(stopping.signal);
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    } finally {
      stop();
      interrupted.removeEventListener('abort', stop);
    }
    if (result?.kind === 'empty') return print(`node/${name} drained`);
    if (result) throw new UserError(unfinished(name, result));
    throw interruption(name, view, late.aborted ? humanDuration((options.timeout ?? 0) * 1000) : undefined);
  });
}

function mustBecomeEmpty(name: string, foreseen: Forecast): void {
  const stayers = stayersOf(foreseen);
  if (stayers.length === 0) return;
  const more = stayers.length > STAYERS_TOLD_MAX ? ` and ${stayers.length - STAYERS_TOLD_MAX} more` : '';
  throw new UserError(
    `${name} would not become empty; nothing was changed: see to ${stayers.slice(0, STAYERS_TOLD_MAX).join(', ')}${more} first, as is said beside each, or with what 'godwit why VM' says`,
  );
}

/** How many are named in a sentence; all are listed above it. */
const STAYERS_TOLD_MAX = 3;

/** Lets a node take pods again; whoever was to leave it for a drain alone, and has not begun to, stays. */
export async function uncordon(name: string, options: ClusterOptions, env: Env, print: Print): Promise<void> {
  await withCluster(options, env, async ({ client }) => {
    await requireNode(client, name);
    const body = { spec: { unschedulable: null } };
    await client.patch(nodes, '', name, { type: 'merge', body }, new AbortController().signal);
  });
  print(`node/${name} uncordoned`);
}

async function requireNode(client: Client, name: string): Promise<void> {
  const node = await client.find(nodes, '', name, new AbortController().signal);
  if (!node) throw new UserError(`there is no node ${name}; 'kubectl get nodes' lists all there are`);
}

/** Aborts when the time is over. */
function lateness(env: Env, timeoutSeconds: number, signal: AbortSignal): AbortSignal {
  const late = new AbortController();
  if (timeoutSeconds === 0) return late.signal;
  const timer = env.clock.setTimer(() => late.abort(), timeoutSeconds * 1000);
  signal.addEventListener('abort', () => timer.cancel());
  return late.signal;
}

/** A view that can be asked what it has shown last. */
class Remembered implements DrainView {
  readonly #view: DrainView;
  last: DrainPicture | undefined;

  constructor(view: DrainView) {
    this.#view = view;
  }

  show(picture: DrainPicture): void {
    this.last = picture;
    this.#view.show(picture);
  }
}

function unfinished(name: string, result: Exclude<DrainResult, { kind: 'empty' }>): string {
  if (result.kind === 'refused')
    return [
      `nothing was changed, since ${name} has pods that nobody has said may go:`,
      ...result.pods.map(({ pod, why }) => `  ${pod}: ${why}`),
    ].join('\n');
  return [
    `${name} does not become empty by itself:`,
    ...result.rows.map(({ machine, detail, remedy }) => `  ${machine} ${detail}; ${remedy}`),
    stays(name),
  ].join('\n');
}

function interruption(name: string, { last }: Remembered, timeout: string | undefined): UserError {
  const why = timeout === undefined ? 'stopped' : `not done within ${timeout}`;
  // Before the first look nothing has been done.
  if (!last) return new UserError(`${why}: nothing was changed`, { exitCode: timeout === undefined ? 130 : 1 });
  return new UserError(`${why}: ${summaryOf(name, last)}\n${stays(name)}`, {
    exitCode: timeout === undefined ? 130 : 1,
  });
}

function stays(name: string): string {
  return `${name} stays cordoned, and who was asked to leave it still does: 'godwit drain ${name}' goes on, 'godwit uncordon ${name}' (or 'kubectl uncordon ${name}') takes it back`;
}
