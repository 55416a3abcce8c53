import type { MigrationScene } from '../../test/support/migration-scene.ts';
import { median, report, rounded } from '../figures.ts';
import { type Copied, inScene, oneCopy } from './one-copy.ts';

/**
 * What packing a copy with zstd is worth: the same guest over the same link, packed and not, in turns. Under a bandwidth limit it
 * can be worth nothing, since QEMU counts what it sends before it is packed; so the link itself is slow.
 */

const ROUNDS = 3;
const CHANNELS = 2;
const WORK_MIB = 64;
const LINKS_MIB_PER_SECOND = [16, 64, Number.POSITIVE_INFINITY];
/** What the guest's memory is full of: sixteen words again and again on each page, or nothing that could be packed. */
const MEMORIES = [
  ['that repeats', 'repeat=16'],
  ['like noise', 'repeat=0'],
] as const;

export async function compression(): Promise<void> {
  await inScene(async (scene) => {
    for (const [memory, argument] of MEMORIES)
      for (const mebibytes of LINKS_MIB_PER_SECOND) await compare(scene, memory, argument, mebibytes);
  });
}

async function compare(scene: MigrationScene, memory: string, argument: string, mebibytes: number): Promise<void> {
  const packed: Copied[] = [];
  const plain: Copied[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const options = { workMiB: WORK_MIB, argument, linkMiBPerSecond: mebibytes };
    plain.push(await oneCopy(scene, { ...options, channels: { count: CHANNELS, compression: 'none' } }));
    packed.push(await oneCopy(scene, { ...options, channels: { count: CHANNELS, compression: 'zstd' } }));
  }
  const [without, with_] = [plain, packed].map((all) => median(all.map(({ seconds }) => seconds)));
  const link = Number.isFinite(mebibytes) ? `over ${mebibytes} MiB/s` : 'over a link without a limit';
  report('migration', {
    figure: `copy of ${WORK_MIB} MiB ${memory}, ${link}, packed`,
    value: with_ ?? Number.NaN,
    unit: 's',
    unpacked: rounded(without ?? Number.NaN),
    ratio: rounded((with_ ?? Number.NaN) / (without ?? Number.NaN)),
    sentMiB: rounded(median(packed.map(({ sentMiB }) => sentMiB))),
    sentUnpackedMiB: rounded(median(plain.map(({ sentMiB }) => sentMiB))),
  });
}
