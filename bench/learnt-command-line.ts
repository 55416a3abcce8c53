import { chownSync, copyFileSync, mkdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { argumentsOf, placeOf } from './processes.ts';

/** Options whose argument is a file. */
const FILES = ['-kernel', '-initrd'];

/** How Godwit has started a QEMU, so that anybody can start another just like it. */
export interface LearntCommandLine {
  /** The program and its arguments, but without `-S`: nobody is going to let it run. Its own files are where it runs. */
  readonly arguments: readonly string[];
  readonly owner: { readonly uid: number; readonly gid: number };
}

/** Learns the command line from one that runs; its files are copied to a new directory, since they go with it. */
export function learn(pid: number, directory: string): LearntCommandLine {
  const [place, args] = [placeOf(pid), argumentsOf(pid)];
  const { uid, gid } = statSync(place);
  mkdirSync(directory, { mode: 0o711 });
  const own = args.map((argument, index) => {
    const option = args[index - 1] ?? '';
    if (!FILES.includes(option)) return argument;
    const copy = join(directory, option.slice(1));
    copyFileSync(resolve(place, argument), copy);
    chownSync(copy, uid, gid);
    return copy;
  });
  return { arguments: own.filter((argument) => argument !== '-S'), owner: { uid, gid } };
}

/** A directory to run one in. */
export function runDirectory(directory: string, { uid, gid }: LearntCommandLine['owner']): string {
  mkdirSync(directory, { recursive: true, mode: 0o711 });
  chownSync(directory, uid, gid);
  return directory;
}
