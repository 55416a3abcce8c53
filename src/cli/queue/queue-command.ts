import type { Env } from '../../env/ports.ts';
import { type ClusterOptions, withCluster } from '../cluster-connection.ts';
import type { OutputFormat } from '../cluster-options.ts';
import type { Paint } from '../colours.ts';
import { printValue } from '../print-value.ts';
import { lookAtCluster } from '../seen/seen-cluster.ts';
import { queueOf } from './queue.ts';
import { queueLines, queueReport } from './queue-report.ts';

/** `godwit queue`. */

export interface QueueCommandOptions extends ClusterOptions {
  readonly output?: OutputFormat;
}

/** Prints who waits. All of the cluster is looked at, since all of it shares the slots; a namespace chooses what is shown. */
export async function queue(
  options: QueueCommandOptions,
  env: Env,
  print: (line: string) => void,
  paint: Paint,
): Promise<void> {
  await withCluster(options, env, async ({ client, namespace: own }) => {
    const nowMs = env.clock.now();
    const seen = await lookAtCluster(client, { namespace: own, nowMs }, new AbortController().signal);
    const all = queueOf(seen);
    const { namespace } = options;
    const isShown = (machine: string): boolean => namespace === undefined || machine.startsWith(`${namespace}/`);
    const shown = { ...all, waiting: all.waiting.filter(({ machine }) => isShown(machine)) };
    if (printValue(queueReport(shown, nowMs), options.output, print)) return;
    for (const line of queueLines(shown, nowMs, { isWide: options.output === 'wide', paint })) print(line);
    if (seen.denied.length > 0) print(`You may not look at ${seen.denied.join(', ')}: there may be more than this.`);
  });
}
