// An archive in the form in which the kernel takes its first file system ("newc"), uncompressed: unpacking would cost
// more time than reading.

const DIRECTORY = 0o040755;
const FILE = 0o100755;
const CHARACTER_DEVICE = 0o020600;

function entry({ path, mode, bytes = Buffer.alloc(0), device = [0, 0], number = 0 }) {
  const name = Buffer.from(`${path}\0`);
  const fields = [number, mode, 0, 0, 1, 0, bytes.length, 0, 0, ...device, name.length, 0];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
  return Buffer.concat([padded(Buffer.concat([Buffer.from(header), name])), padded(bytes)]);
}

function padded(bytes) {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
}

/** The program as `/init`, and the modules, by name, in the order in which it is to load them. */
export function initramfs(program, modules) {
  const names = [...modules.keys()];
  const entries = [
    ...['dev', 'proc', 'sys', 'mnt', 'modules'].map((path) => ({ path, mode: DIRECTORY })),
    { path: 'dev/console', mode: CHARACTER_DEVICE, device: [5, 1] },
    { path: 'init', mode: FILE, bytes: program },
    { path: 'modules/order', mode: FILE, bytes: Buffer.from(names.map((name) => `${name}\n`).join('')) },
    ...names.map((name) => ({ path: `modules/${name}`, mode: FILE, bytes: modules.get(name) })),
    { path: 'TRAILER!!!', mode: 0 },
  ];
  return Buffer.concat(entries.map((each, number) => entry({ ...each, number: number + 1 })));
}
