import type { NoteFiles } from './guest-notes.ts';

/** Files in memory, as many as notes need. */
export class MemoryFiles implements NoteFiles {
  readonly files = new Map<string, Uint8Array>();
  readonly directories = new Set<string>();

  async list(path: string): Promise<readonly string[]> {
    return [...this.files.keys()]
      .filter((each) => each.startsWith(`${path}/`))
      .map((each) => each.slice(path.length + 1));
  }

  async makeDirectory(path: string): Promise<void> {
    this.directories.add(path);
  }

  async *read(path: string): AsyncGenerator<Uint8Array> {
    const bytes = this.files.get(path);
    if (!bytes) throw new Error(`there is no ${path}`);
    yield bytes;
  }

  async remove(path: string): Promise<void> {
    this.files.delete(path);
    this.directories.delete(path);
  }

  async replace(path: string, bytes: Uint8Array): Promise<void> {
    this.files.set(path, Uint8Array.from(bytes));
  }
}
