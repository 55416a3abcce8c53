import { availableParallelism, loadavg } from 'node:os';
import { report } from './figures.ts';
import { run, type Run } from './kubernetes/models.ts';

/**
 * Migrations on a real Kubernetes control plane, which is started for each run. Arguments are how many move at once, without
 * limits, and `limited` is a hundred within the usual ones: `npm run bench -- kubernetes 100 1000 limited`.
 */

const LIMITED: Run = { count: 100, isLimited: true };
const runOf = (word: string): Run => (word === 'limited' ? LIMITED : { count: Number(word), isLimited: false });

// What was started is ended when this process ends, so it has to end in its own way.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const [oneMinute = 0] = loadavg();
report('kubernetes', { figure: 'load before', value: oneMinute, unit: 'processes', cores: availableParallelism() });

const words = process.argv.slice(2);
for (const word of words.length > 0 ? words : ['100', '500', '1000', 'limited']) await run(runOf(word));
