import { availableParallelism, loadavg } from 'node:os';
import { report } from './figures.ts';
import { crowd } from './vm/crowd.ts';
import { models } from './vm/models.ts';
import { startOne } from './vm/start.ts';
import { up } from './vm/up.ts';

/**
 * Virtual machines: real ones on the nodes of a real `godwit up`, beside the same QEMU started by hand; and models of
 * machines, many more than this one could carry. Arguments choose parts: `npm run bench -- vm start`.
 */

const parts: { readonly [name: string]: () => Promise<void> } = { up, start: startOne, crowd, models };

// What was started is ended when this process ends, so it has to end in its own way.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const [oneMinute = 0] = loadavg();
report('vm', { figure: 'load before', value: oneMinute, unit: 'processes', cores: availableParallelism() });

const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : Object.keys(parts)) {
  const part = parts[name];
  if (!part) throw new Error(`there is no part ${name}; there are ${Object.keys(parts).join(', ')}`);
  await part();
}
