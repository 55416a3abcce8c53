/** The code of guest/accelerator/boot.S, assembled. */
const CODE = [
  '+jHAjtiOwI7QvAB8/Ga/ABAAAGYxwGa5AAwAAGbzq2bHBgAQAyAAAGbHBgAgAzAAAGbHBgAwgwAAAGa4ABAAAA8i2Ga4IAAAAA8i',
  '4Ga5gAAAwA8yZg0AAQAADzAPARbwfA8gwGYNAQAAgA8iwGbqdXwAAAgAZrgQAI7YjsCO0LwAAAEAvwAAEAC5UMMAAEiJD0iDxwj/',
  'yXX1vgAAEAC5UMMAADHbSAMeSIPGCP/JdfW4KN6BSkg5w3UTSI01DwAAAGa6+AOshMB0A+7r+PTr/WdvZHdpdAoAAAAAAAAAAAAA',
  'AAAAAJogAAAAAAAAkgAAFwDYfA==',
].join('');

const SECTOR_BYTES = 512;
/** The firmware passes over disks of less than a cylinder. */
const IMAGE_BYTES = 1024 * 1024;

/** What the guest says once it has seen that its processor works. */
export const BOOT_WORD = 'godwit';

/** A disk whose boot sector says `BOOT_WORD` through the serial port, from long mode. */
export function bootImage(): Uint8Array {
  const image = new Uint8Array(IMAGE_BYTES);
  image.set(Buffer.from(CODE, 'base64'));
  image.set([0x55, 0xaa], SECTOR_BYTES - 2);
  return image;
}
