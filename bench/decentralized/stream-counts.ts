import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { report, rounded } from '../figures.ts';
import type { Joined } from './clusters.ts';

/** What a synchronization controller has counted of its streams, by direction and kind. */
export interface StreamCounts {
  readonly messages: ReadonlyMap<string, number>;
  readonly bytes: ReadonlyMap<string, number>;
}

const LINE =
  /^godwit_synchronization_(messages|message_bytes)_total\{direction="(\w+)",kind="(\w+)"\} (\d+(?:\.\d+)?(?:e\+\d+)?)$/gm;
/** Said whether or not anything happens. */
const IDLE: ReadonlySet<string> = new Set(['ping', 'hello', 'welcome', 'goodbye', 'bundle']);

export async function streamCounts({ cluster }: Joined): Promise<StreamCounts> {
  const port = readFileSync(join(cluster.dataDirectory, 'synchronization-metrics-port'), 'utf8').trim();
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const [messages, bytes] = [new Map<string, number>(), new Map<string, number>()];
  for (const [, what, direction = '', kind = '', count] of text.matchAll(LINE))
    if (!IDLE.has(kind)) (what === 'messages' ? messages : bytes).set(`${direction} ${kind}`, Number(count));
  return { messages, bytes };
}

/** Reports what was said between the two for each of so many migrations, both directions together. */
export function reportStream(of: string, before: StreamCounts, after: StreamCounts, migrations: number): void {
  for (const [field, unit] of [
    ['messages', 'messages'],
    ['bytes', 'B'],
  ] as const) {
    const each = [...after[field]].map(
      ([what, count]) => [what, (count - (before[field].get(what) ?? 0)) / migrations] as const,
    );
    const value = each.reduce((sum, [, count]) => sum + count, 0);
    const details = Object.fromEntries(each.filter(([, count]) => count > 0).map(([what, n]) => [what, rounded(n)]));
    report('decentralized', { figure: `${of}, ${field} on the stream for each`, value, unit, ...details });
  }
}
