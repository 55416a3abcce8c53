import { measureInformer } from './runtime/informer.ts';
import { queue } from './runtime/queue.ts';
import { measureScheduler } from './runtime/scheduler.ts';
import { measureSimulation } from './runtime/simulation.ts';
import { measureSlots } from './runtime/slots.ts';

/**
 * The ground that controllers stand on, in this process. Arguments choose parts: `npm run bench -- runtime queue`.
 */

const parts: { readonly [name: string]: () => Promise<void> } = {
  queue,
  informer: measureInformer,
  scheduler: measureScheduler,
  simulation: measureSimulation,
  slots: measureSlots,
};

const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : Object.keys(parts)) {
  const part = parts[name];
  if (!part) throw new Error(`there is no part ${name}; there are ${Object.keys(parts).join(', ')}`);
  await part();
}
