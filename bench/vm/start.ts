import { linux, probe, virtualMachine } from '../../test/support/guest-manifests.ts';
import { median, report, rounded } from '../figures.ts';
import { ByHand } from './by-hand.ts';
import { LocalCluster } from './local-cluster.ts';
import { MOMENTS, Progress } from './progress.ts';
import { join } from 'node:path';

/** How long it takes from applying a machine until it runs, and until its guest speaks, beside starting QEMU by hand. */

const NODES = 3;
const PAIRS = 7;

const KINDS = { 'bare-metal': () => probe({ tickMs: 200 }), Linux: () => linux({ tickMs: 200 }) };

export async function startOne(): Promise<void> {
  const cluster = new LocalCluster(NODES);
  try {
    await cluster.start();
    cluster.importGuests();
    const progress = await Progress.follow(cluster);
    for (const [kind, specOf] of Object.entries(KINDS)) await pairs(cluster, progress, kind, specOf());
  } finally {
    cluster.remove();
  }
}

async function pairs(cluster: LocalCluster, progress: Progress, kind: string, spec: object): Promise<void> {
  const start = async (name: string): Promise<void> => {
    await progress.apply(virtualMachine(name, spec));
    await Promise.all([progress.reaches(name, 'Running'), progress.reaches(name, 'Spoken')]);
  };
  const named = (index: number): string => `${kind.toLowerCase()}-${index}`;
  // The first warms everything up, and shows how it is done.
  await start(named(0));
  const [qemu = 0] = cluster.qemus();
  const byHand = ByHand.like(qemu, join(cluster.directory, `hand-${kind}`));
  await progress.delete(named(0));
  const monitor: number[] = [];
  const spoken: number[] = [];
  for (let index = 1; index <= PAIRS; index++) {
    await start(named(index));
    await progress.delete(named(index));
    const { monitorMs, spokenMs } = await byHand.start();
    await byHand.end();
    monitor.push(monitorMs);
    spoken.push(spokenMs);
  }
  const at = (moment: (typeof MOMENTS)[number]): number =>
    median(Array.from({ length: PAIRS }, (_, index) => progress.at(named(index + 1), moment)));
  report('vm', {
    figure: `${kind} guest, apply to Running`,
    value: at('Running'),
    unit: 'ms',
    ...beside(at('Running'), median(monitor)),
  });
  report('vm', {
    figure: `${kind} guest, apply to its first line`,
    value: at('Spoken'),
    unit: 'ms',
    ...beside(at('Spoken'), median(spoken)),
  });
  const moments = Object.fromEntries(MOMENTS.slice(1).map((moment) => [moment, rounded(at(moment))]));
  report('vm', { figure: `${kind} guest, what is seen when`, value: at('Spoken'), unit: 'ms', moments });
}

/** The same QEMU started by hand: until its monitor speaks, or until its guest does. */
function beside(valueMs: number, byHandMs: number): object {
  return { byHand: rounded(byHandMs), ratio: rounded(valueMs / byHandMs), moreMs: rounded(valueMs - byHandMs) };
}
