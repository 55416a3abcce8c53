import { median, report } from '../figures.ts';
import { LocalCluster } from './local-cluster.ts';

/** How long `godwit up` takes until it serves, and until all nodes can run guests: the first time, and again. */

const NODES = 3;
const ROUNDS = 3;

export async function up(): Promise<void> {
  const first: Times[] = [];
  const again: Times[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const cluster = new LocalCluster(NODES);
    try {
      first.push(await cluster.start());
      await cluster.stop();
      again.push(await cluster.start());
    } finally {
      cluster.remove();
    }
  }
  for (const [when, times] of [
    ['first start', first],
    ['start on the same data', again],
  ] as const) {
    report('vm', {
      figure: `${when}, until it serves`,
      value: median(times.map(({ servesMs }) => servesMs)),
      unit: 'ms',
    });
    const ready = median(times.map(({ readyMs }) => readyMs));
    report('vm', { figure: `${when}, until ${NODES} nodes are ready`, value: ready, unit: 'ms' });
  }
}

type Times = Awaited<ReturnType<LocalCluster['start']>>;
