import { availableParallelism, loadavg } from 'node:os';
import { models } from './decentralized/models.ts';
import { moves } from './decentralized/moves.ts';
import { report } from './figures.ts';

/**
 * Guests that go to another namespace or another cluster: real ones between two real `godwit up`, beside the same guest that
 * moves inside its namespace; and models, many more than this machine could carry. Arguments choose parts, and how much:
 * `npm run bench -- decentralized models 100`, or `moves 5 128 512` for five rounds with guests of these sizes in MiB.
 */

type Part = (counts: readonly number[]) => Promise<void>;

const parts: { readonly [name: string]: Part } = {
  moves,
  models: (counts) => models(counts.length > 0 ? counts : undefined),
};

// What was started is ended when this process ends, so it has to end in its own way.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const [oneMinute = 0] = loadavg();
report('decentralized', { figure: 'load before', value: oneMinute, unit: 'processes', cores: availableParallelism() });

const words = process.argv.slice(2);
const isCount = (word: string): boolean => /^\d+$/.test(word);
const counts = words.filter(isCount).map(Number);
const asked = words.filter((word) => !isCount(word));
for (const name of asked.length > 0 ? asked : Object.keys(parts)) {
  const part = parts[name];
  if (!part) throw new Error(`there is no part ${name}; there are ${Object.keys(parts).join(', ')}`);
  await part(counts);
}
