import type { Processes } from '../../env/ports.ts';
import type { Accelerator } from '../machine.ts';

/** What guests can be given on a host, by the word of its QEMU. */
export interface HypervisorCapabilities {
  readonly version: string;
  /** Models of processors that guests can really have here. */
  readonly cpuModels: readonly string[];
  /** Features of the best processor that a guest can have here. */
  readonly cpuFeatures: readonly string[];
  /** `Intel`, `AMD` or what the processor calls itself. */
  readonly cpuVendor: string;
  /** The model that comes closest to that processor, and the features that it lacks; undefined where none does. */
  readonly hostModel: { readonly name: string; readonly missingFeatures: readonly string[] } | undefined;
  /** With their aliases. */
  readonly machineTypes: readonly string[];
}

interface CpuDefinition {
  readonly name: string;
  readonly 'unavailable-features'?: readonly string[];
  readonly 'migration-safe'?: boolean;
}

interface MachineDefinition {
  readonly name: string;
  readonly alias?: string;
  readonly deprecated?: boolean;
}

interface Expansion {
  readonly model: { readonly props: Readonly<Record<string, unknown>> };
}

interface VersionAnswer {
  readonly qemu: { readonly major: number; readonly minor: number; readonly micro: number };
}

/** What command lines are written for. */
const MACHINE_FAMILIES = /^(microvm|q35|pc|pc-q35-.*|pc-i440fx-.*)$/;
/** Other names for a state of the same model: too many to tell of each. */
const VERSIONED_MODEL = /-v\d+$/;
const VENDORS: ReadonlyMap<unknown, string> = new Map([
  ['GenuineIntel', 'Intel'],
  ['AuthenticAMD', 'AMD'],
]);

/** Answers are ten kilobytes each, and a command may print a megabyte. */
const EXPANSIONS_AT_ONCE = 20;

/** Asks a QEMU that runs no guest what it can do. Rejects where it cannot be started. */
export async function queryCapabilities(
  processes: Pick<Processes, 'run'>,
  binary: string,
  accelerator: Accelerator,
): Promise<HypervisorCapabilities> {
  const ask = (...commands: readonly object[]): Promise<unknown[]> => answers(processes, binary, accelerator, commands);
  const best = accelerator === 'kvm' ? 'host' : 'max';
  const [version, cpus, machines, host] = (await ask(
    { execute: 'query-version' },
    { execute: 'query-cpu-definitions' },
    { execute: 'query-machines' },
    expansionOf(best),
  )) as [VersionAnswer, readonly CpuDefinition[], readonly MachineDefinition[], Expansion];
  const cpuModels = cpus.filter(isUsable).map(({ name }) => name);
  const models = new Map<string, Expansion>();
  for (let at = 0; at < cpuModels.length; at += EXPANSIONS_AT_ONCE) {
    const some = cpuModels.slice(at, at + EXPANSIONS_AT_ONCE);
    const expansions = await ask(...some.map(expansionOf));
    for (const [index, name] of some.entries()) models.set(name, expansions[index] as Expansion);
  }
  const { major, minor, micro } = version.qemu;
  return {
    version: `${major}.${minor}.${micro}`,
    cpuModels: cpuModels.toSorted(),
    cpuFeatures: [...featuresOf(host)].toSorted(),
    cpuVendor: vendorOf(host),
    hostModel: closestModel(host, models),
    machineTypes: machines
      .filter(({ name, deprecated }) => deprecated !== true && MACHINE_FAMILIES.test(name))
      .flatMap(({ name, alias }) => (alias === undefined ? [name] : [alias, name]))
      .toSorted(),
  };
}

function expansionOf(name: string): object {
  return { execute: 'query-cpu-model-expansion', arguments: { type: 'static', model: { name } } };
}

function isUsable(definition: CpuDefinition): boolean {
  const { name, 'unavailable-features': unavailable = [], 'migration-safe': isMigrationSafe } = definition;
  return isMigrationSafe === true && unavailable.length === 0 && name !== 'base' && !VERSIONED_MODEL.test(name);
}

function featuresOf({ model }: Expansion): Set<string> {
  return new Set(Object.keys(model.props).filter((name) => model.props[name] === true));
}

function vendorOf({ model }: Expansion): string {
  const vendor = model.props['vendor'];
  return VENDORS.get(vendor) ?? (typeof vendor === 'string' ? vendor : '');
}

/** The model of the same maker that has most of the host's features, and none that it has not. */
function closestModel(
  host: Expansion,
  models: ReadonlyMap<string, Expansion>,
): HypervisorCapabilities['hostModel'] | undefined {
  const own = featuresOf(host);
  let best: { name: string; features: Set<string> } | undefined;
  for (const [name, expansion] of [...models].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (vendorOf(expansion) !== vendorOf(host)) continue;
    const features = featuresOf(expansion);
    if ([...features].some((feature) => !own.has(feature))) continue;
    if (best === undefined || features.size > best.features.size) best = { name, features };
  }
  if (best === undefined) return undefined;
  const { name, features } = best;
  return { name, missingFeatures: [...own].filter((feature) => !features.has(feature)).toSorted() };
}

/** The shell is there to give QEMU something to read; commands go to it as arguments, never as a script. */
const SCRIPT =
  'qemu=$1; accelerator=$2; shift 2; printf "%s\\n" "$@" | exec "$qemu" -machine q35 -accel "$accelerator"';
const OPTIONS = ' -S -nodefaults -no-user-config -display none -qmp stdio';

async function answers(
  processes: Pick<Processes, 'run'>,
  binary: string,
  accelerator: Accelerator,
  commands: readonly object[],
): Promise<unknown[]> {
  const all = [{ execute: 'qmp_capabilities' }, ...commands.map((each, id) => ({ ...each, id })), { execute: 'quit' }];
  const lines = all.map((command) => JSON.stringify(command));
  const output = await processes.run('/bin/sh', ['-c', SCRIPT + OPTIONS, 'sh', binary, accelerator, ...lines]);
  const found = new Map<unknown, unknown>();
  for (const line of output.split('\n')) {
    if (line.trim() === '') continue;
    const { id, return: result, error } = JSON.parse(line) as { id?: unknown; return?: unknown; error?: object };
    if (error) throw new Error(`QEMU does not say what it can do: ${JSON.stringify(error)}`);
    if (id !== undefined) found.set(id, result);
  }
  return commands.map((_, id) => {
    if (!found.has(id)) throw new Error('QEMU ended before it had said what it can do');
    return found.get(id);
  });
}
