import { availableParallelism, loadavg } from 'node:os';
import { models, webhooks } from './eviction/models.ts';
import { realGuests } from './eviction/real-guests.ts';
import { report } from './figures.ts';

/**
 * Evictions that become migrations: a node with ten real guests that is drained, one with a thousand models, and what the
 * webhook costs whoever evicts; then the webhook alone. Arguments choose parts: `npm run bench -- eviction guests`.
 */

const parts: { readonly [name: string]: () => Promise<void> } = { guests: realGuests, models, webhooks };

// What was started is ended when this process ends, so it has to end in its own way.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const [oneMinute = 0] = loadavg();
report('eviction', { figure: 'load before', value: oneMinute, unit: 'processes', cores: availableParallelism() });

const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : Object.keys(parts)) {
  const part = parts[name];
  if (!part) throw new Error(`there is no part ${name}; there are ${Object.keys(parts).join(', ')}`);
  await part();
}
