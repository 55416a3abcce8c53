import type { MultipleChannels } from '../../src/hypervisor/migration.ts';
import { MigrationScene, state } from '../../test/support/migration-scene.ts';
import { SlowLink } from './slow-link.ts';

const MEBIBYTE = 1024 * 1024;
/** What the guest needs besides the memory that it fills. */
const OWN_MIB = 24;

export interface CopyOptions {
  /** How much of its memory the guest fills. */
  readonly workMiB: number;
  /** What it fills it with. */
  readonly argument: string;
  readonly linkMiBPerSecond: number;
  readonly channels: MultipleChannels | undefined;
}

export interface Copied {
  readonly seconds: number;
  readonly sentMiB: number;
}

export async function inScene(measure: (scene: MigrationScene) => Promise<void>): Promise<void> {
  const scene = await MigrationScene.open();
  // Waiting for a machine, which outlives this process, does not keep it from ending.
  const alive = setInterval(() => undefined, 1000);
  try {
    await measure(scene);
  } finally {
    await scene.close();
    clearInterval(alive);
  }
}

/** One guest goes over, encrypted as always, and is ended there. */
export async function oneCopy(scene: MigrationScene, options: CopyOptions): Promise<Copied> {
  const { workMiB, argument, linkMiBPerSecond, channels } = options;
  const commandLine = `mib=${workMiB} tick=20 hz=200 rate=0 ${argument}`;
  const spec = scene.bench.spec({ memoryMiB: workMiB + OWN_MIB, commandLine });
  const source = await scene.running(spec);
  const target = await scene.target(source, spec);
  const tls = await scene.credentials();
  const { memoryPort } = await target.machine.migration.listen(scene.listenOptions({ channels }, tls.target));
  const link = await SlowLink.open(memoryPort, linkMiBPerSecond * MEBIBYTE);
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
