import { availableParallelism, loadavg } from 'node:os';
import { report } from './figures.ts';
import { channels } from './migration/channels.ts';
import { compression } from './migration/compression.ts';
import { models } from './migration/models.ts';
import { pairs } from './migration/pairs.ts';

/**
 * Live migration: real guests on the nodes of a real `godwit up`, beside the same QEMU that is moved by hand; what packing
 * memory is worth, by the link, and what more channels are, by size; and models of guests, many more than this machine could carry. Arguments choose parts, and of
 * models how many move at once: `npm run bench -- migration pairs models 100 1000`.
 */

type Part = (counts: readonly number[]) => Promise<void>;

const parts: { readonly [name: string]: Part } = {
  pairs: () => pairs(),
  compression: () => compression(),
  channels: () => channels(),
  models: (counts) => models(counts.length > 0 ? counts : undefined),
};

// What was started is ended when this process ends, so it has to end in its own way.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const [oneMinute = 0] = loadavg();
report('migration', { figure: 'load before', value: oneMinute, unit: 'processes', cores: availableParallelism() });

const words = process.argv.slice(2);
const isCount = (word: string): boolean => /^\d+$/.test(word);
const counts = words.filter(isCount).map(Number);
const asked = words.filter((word) => !isCount(word));
for (const name of asked.length > 0 ? asked : Object.keys(parts)) {
  const part = parts[name];
  if (!part) throw new Error(`there is no part ${name}; there are ${Object.keys(parts).join(', ')}`);
  await part(counts);
}
