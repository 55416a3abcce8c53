import type { KubeObject } from '../../api/meta.ts';

interface OwnWrite {
  /** The version that it made, once that is known. */
  version: string | undefined;
  /** Versions that were heard of before that. */
  readonly heard: (string | undefined)[];
}

/**
 * Tells what others write from the echo of what was written here: whoever wrote it knew what it says, and all that it
 * followed from. The echo may be heard before the answer to the write, or after it.
 */
export class OwnWrites {
  readonly #onOthers: (uid: string) => void;
  readonly #writes = new Map<string, OwnWrite>();

  /** `onOthers` is called with the UID of each object that somebody else may have changed. */
  constructor(onOthers: (uid: string) => void) {
    this.#onOthers = onOthers;
  }

  /** An object is there, or has changed. */
  heard({ metadata: { uid = '', resourceVersion } }: KubeObject): void {
    const own = this.#writes.get(uid);
    if (own && own.version === undefined) return void own.heard.push(resourceVersion);
    this.#writes.delete(uid);
    if (!own || own.version !== resourceVersion) this.#onOthers(uid);
  }

  /** An object is gone. */
  gone(uid: string): void {
    this.#writes.delete(uid);
    this.#onOthers(uid);
  }

  /** Writes, one at a time for each object; rejects as the write does. */
  async write<T extends KubeObject>(uid: string, write: () => Promise<T>): Promise<T> {
    const own: OwnWrite = { version: undefined, heard: [] };
    this.#writes.set(uid, own);
    try {
      const written = await write();
      own.version = written.metadata.resourceVersion;
      return written;
    } finally {
      const { version, heard } = own;
      const isHeard = version === undefined || heard.includes(version);
      if (isHeard && this.#writes.get(uid) === own) this.#writes.delete(uid);
      if (heard.some((each) => each !== version)) this.#onOthers(uid);
    }
  }
}
