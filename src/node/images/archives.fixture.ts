import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';

/** Writes archives, good ones and bad ones. */

export interface TarFile {
  readonly path: string;
  readonly body?: Uint8Array | string;
  /** `0` a file, `1` a hard link, `2` a symbolic one, `5` a directory. */
  readonly type?: string;
  readonly linkPath?: string;
}

/** A tar archive, in the plain format: paths of at most 100 bytes. */
export function tarOf(...files: readonly TarFile[]): Buffer {
  return Buffer.concat([...files.map(entryOf), Buffer.alloc(1024)]);
}

function entryOf({ path, body = '', type = '0', linkPath = '' }: TarFile): Buffer {
  const contents = Buffer.from(body);
  const header = Buffer.alloc(512);
  header.write(path, 0, 100);
  header.write('0000644\0', 100);
  header.write(`${contents.length.toString(8).padStart(11, '0')} `, 124);
  header.write(type, 156);
  header.write(linkPath, 157, 100);
  header.write('ustar\x0000', 257);
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  const padding = Buffer.alloc((512 - (contents.length % 512)) % 512);
  return Buffer.concat([header, contents, padding]);
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** An archive in OCI's layout, with layers as they are given. */
export function ociArchive(
  layers: readonly Buffer[],
  change: (files: TarFile[]) => TarFile[] = (files) => files,
): Buffer {
  const blob = (bytes: Buffer): TarFile => ({ path: `blobs/sha256/${sha256(bytes)}`, body: bytes });
  const described = (bytes: Buffer, mediaType: string) => ({
    mediaType,
    digest: `sha256:${sha256(bytes)}`,
    size: bytes.length,
  });
  const config = Buffer.from('{}');
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      config: described(config, 'application/vnd.oci.image.config.v1+json'),
      layers: layers.map((layer) => described(layer, 'application/vnd.oci.image.layer.v1.tar+gzip')),
    }),
  );
  const index = { schemaVersion: 2, manifests: [described(manifest, 'application/vnd.oci.image.manifest.v1+json')] };
  return tarOf(
    ...change([
      ...layers.map(blob),
      blob(config),
      blob(manifest),
      { path: 'oci-layout', body: '{"imageLayoutVersion":"1.0.0"}' },
      { path: 'index.json', body: JSON.stringify(index) },
    ]),
  );
}

/** An archive as `docker save` writes it. */
export function dockerArchive(
  layers: readonly Buffer[],
  change: (files: TarFile[]) => TarFile[] = (files) => files,
): Buffer {
  const config = JSON.stringify({ rootfs: { diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`) } });
  const paths = layers.map((_, index) => `layer${index}/layer.tar`);
  return tarOf(
    ...change([
      { path: 'config.json', body: config },
      ...layers.map((body, index): TarFile => ({ path: paths[index] ?? '', body })),
      { path: 'manifest.json', body: JSON.stringify([{ Config: 'config.json', RepoTags: ['web:1'], Layers: paths }]) },
    ]),
  );
}

export const gzip = (bytes: Uint8Array): Buffer => gzipSync(bytes);
