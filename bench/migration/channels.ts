import { availableParallelism } from 'node:os';
import { median, report, rounded } from '../figures.ts';
import { inScene, oneCopy } from './one-copy.ts';

/** What more than one channel is worth: the same guest over a link without a limit, by one and by several, in turns. */

const ROUNDS = 3;
const SIZES_MIB = [128, 512, 1536];

export async function channels(): Promise<void> {
  const count = Math.max(2, availableParallelism());
  await inScene(async (scene) => {
    for (const workMiB of SIZES_MIB) {
      const [one, several]: [number[], number[]] = [[], []];
      for (let round = 0; round < ROUNDS; round++) {
        const options = { workMiB, argument: 'repeat=0', linkMiBPerSecond: Number.POSITIVE_INFINITY };
        one.push((await oneCopy(scene, { ...options, channels: undefined })).seconds);
        several.push((await oneCopy(scene, { ...options, channels: { count, compression: 'none' } })).seconds);
      }
      report('migration', {
        figure: `copy of ${workMiB} MiB by ${count} channels`,
        value: median(several),
        unit: 's',
        byOne: rounded(median(one)),
        ratio: rounded(median(several) / median(one)),
      });
    }
  });
}
