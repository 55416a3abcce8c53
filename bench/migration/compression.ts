import type { MultipleChannels } from '../../src/hypervisor/migration.ts';
import { MigrationScene, state } from '../../test/support/migration-scene.ts';
import { median, report, rounded } from '../figures.ts';
import { SlowLink } from './slow-link.ts';

/**
 * What packing a copy with zstd is worth: the same guest over the same link, packed and not, in turns. Under a bandwidth limit it
 * can be worth nothing, since QEMU counts what it sends before it is packed; so the link itself is slow.
 */

const MEBIBYTE = 1024 * 1024;
const ROUNDS = 3;
const CHANNELS = 2;
const WORK_MIB = 64;
const LINKS_MIB_PER_SECOND = [16, 64, Number.POSITIVE_INFINITY];
/** What the guest's memory is full of: sixteen words again and again on each page, or nothing that could be packed. */
const MEMORIES = [
  ['that repeats', 'repeat=16'],
  ['like noise', 'repeat=0'],
] as const;

interface Copied {
  readonly seconds: number;
  readonly sentMiB: number;
}

export async function compression(): Promise<void> {
  const scene = await MigrationScene.open();
  // Waiting for a machine, which outlives this process, does not keep it from ending.
  const alive = setInterval(() => undefined, 1000);
  try {
    for (const [memory, argument] of MEMORIES)
      for (const mebibytes of LINKS_MIB_PER_SECOND) await compare(scene, memory, argument, mebibytes);
  } finally {
    await scene.close();
    clearInterval(alive);
  }
}

async function compare(scene: MigrationScene, memory: string, argument: string, mebibytes: number): Promise<void> {
  const packed: Copied[] = [];
  const plain: Copied[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    plain.push(await copy(scene, argument, mebibytes, 'none'));
    packed.push(await copy(scene, argument, mebibytes, 'zstd'));
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

/** One guest goes over, encrypted as always, and is ended there. */
async function copy(
  scene: MigrationScene,
  argument: string,
  mebibytes: number,
  packing: MultipleChannels['compression'],
): Promise<Copied> {
  const commandLine = `mib=${WORK_MIB} tick=20 hz=200 rate=0 ${argument}`;
  const spec = scene.bench.spec({ memoryMiB: WORK_MIB + 24, commandLine });
  const source = await scene.running(spec);
  const target = await scene.target(source, spec);
  const tls = await scene.credentials();
  const channels = { count: CHANNELS, compression: packing };
  const { memoryPort } = await target.machine.migration.listen(scene.listenOptions({ channels }, tls.target));
  const link = await SlowLink.open(memoryPort, mebibytes * MEBIBYTE);
  try {
    // At once: whoever looks now and then would be part of the figure.
    source.machine.onEvent((event) =>
      event.kind === 'migration' && event.state === 'pre-switchover'
        ? source.machine.migration.switchOver()
        : undefined,
    );
    await source.machine.migration.start(scene.sendOptions(link.port, { channels }, tls.source));
    await state(source, 'completed');
    const { totalMs } = await source.machine.migration.progress();
    return { seconds: totalMs / 1000, sentMiB: link.passedBytes / MEBIBYTE };
  } finally {
    link.close();
    await source.machine.kill();
    await target.machine.kill();
  }
}
