import type { Env } from '../../env/ports.ts';
import { type ClusterOptions, withCluster } from '../cluster-connection.ts';
import type { OutputFormat } from '../cluster-options.ts';
import type { Paint } from '../colours.ts';
import { printValue } from '../print-value.ts';
import { lookAtCluster } from '../seen/seen-cluster.ts';
import { pictureOf } from './picture.ts';
import { pictureLines } from './picture-lines.ts';

/** `godwit status`. */

export interface StatusCommandOptions extends ClusterOptions {
  readonly output?: OutputFormat;
}

/** Prints the cluster as it is. */
export async function status(
  options: StatusCommandOptions,
  env: Env,
  print: (line: string) => void,
  paint: Paint,
): Promise<void> {
  await withCluster(options, env, async ({ client, namespace }) => {
    const nowMs = env.clock.now();
    const seen = await lookAtCluster(client, { namespace, nowMs }, new AbortController().signal);
    const picture = pictureOf(seen, options.namespace);
    if (printValue(picture, options.output, print)) return;
    for (const line of pictureLines(picture, { isWide: options.output === 'wide', paint, nowMs })) print(line);
  });
}
