import type { FileDescription } from '../../env/ports.ts';
import type { NoteFiles } from './guest-notes.ts';
import type { LogFiles } from './run-upkeep.ts';

/** Files in memory, as many as notes need. */
export class MemoryFiles implements NoteFiles, LogFiles {
  readonly files = new Map<string, Uint8Array>();
  readonly directories = new Set<string>();
  /** Sizes of files that are not there, but said to be. */
  readonly sizes = new Map<string, number>();

  async list(path: string): Promise<readonly string[]> {
    return [...this.files.keys()]
      .filter((each) => each.startsWith(`${path}/`))
      .map((each) => each.slice(path.length + 1));
  }

  async makeDirectory(path: string): Promise<void> {
    this.directories.add(path);
  }

  async *read(path: string, part?: { offset: number; length: number }): AsyncGenerator<Uint8Array> {
    const bytes = this.files.get(path);
    if (!bytes) throw new Error(`there is no ${path}`);
    yield part ? bytes.subarray(part.offset, part.offset + part.length) : bytes;
  }

  async describe(path: string): Promise<FileDescription | undefined> {
    const sizeBytes = this.files.get(path)?.length ?? this.sizes.get(path);
    const rest = { kind: 'file', modifiedMs: 0, owner: { uid: 0, gid: 0 }, mode: 0o600 } as const;
    return sizeBytes === undefined ? undefined : { ...rest, sizeBytes };
  }

  async empty(path: string): Promise<void> {
    this.files.set(path, new Uint8Array());
  }

  async remove(path: string): Promise<void> {
    this.files.delete(path);
    this.directories.delete(path);
  }

  async replace(path: string, bytes: Uint8Array): Promise<void> {
    this.files.set(path, Uint8Array.from(bytes));
  }
}
