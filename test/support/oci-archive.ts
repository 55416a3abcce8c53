/** Images as the script packs them that makes the one of all components. Plain JavaScript, so that it needs nothing: typed here. */

export interface Layer {
  readonly contents: Buffer;
  readonly diffId: string;
}

export interface OciImage {
  readonly name: string;
  readonly layers: readonly Layer[];
  /** What is run in it, as the OCI image specification has it. */
  readonly config: object;
  readonly createdBy: string;
}

interface OciArchive {
  /** The image of all components where no other name is given. */
  readonly usualName: (version: string) => string;
  /** A name with its registry, as runtimes know images. */
  readonly fullName: (name: string) => string;
  /** A layer of all that is below a directory. */
  readonly layerOf: (directory: string) => Layer;
  /** The archive of an image; `place` is for files that are made on the way. */
  readonly ociArchive: (place: string, image: OciImage) => Buffer;
}

const script = new URL('../../scripts/oci-archive.mjs', import.meta.url).href;
export const { fullName, layerOf, ociArchive, usualName } = (await import(script)) as OciArchive;
