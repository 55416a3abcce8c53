// Kernel modules and what they need, in an order in which they can be loaded.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const SUFFIX = /\.ko(\.xz|\.zst)?$/;
/** What unpacks them, and the package that has it. */
const UNPACKERS = { '.xz': ['xz', 'xz-utils'], '.zst': ['zstd', 'zstd'] };

/** The kernel treats both characters as one in names. */
function nameOf(file) {
  return basename(file).replace(SUFFIX, '').replaceAll('-', '_');
}

/** Some distributions pack their modules. */
function contentOf(file) {
  const [, packed] = SUFFIX.exec(file);
  if (!packed) return readFileSync(file);
  const [command, name] = UNPACKERS[packed];
  const { stdout, status, error } = spawnSync(command, ['-dc', file], { maxBuffer: 64 * 1024 * 1024 });
  const why = error?.code === 'ENOENT' ? `there is no ${command}: apt-get install -y ${name}` : `${command} failed`;
  if (status !== 0) throw new Error(`${basename(file)} cannot be unpacked: ${why}`);
  return stdout;
}

/** What a module says of itself, as text that ends with a zero byte. */
function dependenciesOf(bytes) {
  const start = bytes.indexOf('\0depends=', 0, 'latin1') + '\0depends='.length;
  const text = bytes.toString('latin1', start, bytes.indexOf(0, start));
  return text
    .split(',')
    .filter((name) => name !== '')
    .map((name) => name.replaceAll('-', '_'));
}

/** The modules below a directory that are wanted and those that they need, each before whoever needs it. */
export function modulesInOrder(directory, wanted) {
  const files = new Map(
    readdirSync(directory, { recursive: true })
      .filter((file) => SUFFIX.test(file))
      .map((file) => [nameOf(file), join(directory, file)]),
  );
  const ordered = new Map();
  const add = (name) => {
    if (ordered.has(name)) return;
    const file = files.get(name);
    // What is no module is built into the kernel.
    if (!file) return;
    const bytes = contentOf(file);
    for (const needed of dependenciesOf(bytes)) add(needed);
    ordered.set(name, bytes);
  };
  for (const name of wanted) add(name);
  return ordered;
}
