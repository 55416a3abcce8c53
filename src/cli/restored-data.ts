import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Restoration } from '../api/kubevirt/kube-virt.ts';
import type { JsonObject } from '../api/meta.ts';
import { DATA_FILE, openLmdbEngine } from '../apiserver/storage/lmdb-engine.ts';
import type { Engine } from '../apiserver/storage/port.ts';
import { type LoggedObject, renewLog } from '../apiserver/storage/renew-log.ts';
import type { Random } from '../env/ports.ts';
import { writePrivately } from './write-privately.ts';

/**
 * Data of the API that was put back from a copy. What happened since the copy was made is known to nobody but the nodes: so
 * it is served with newer versions than were ever given out, and no guest starts before all nodes were heard.
 */

const DATA = 'data';
/**
 * Says which file the data was in when it was last served: a copy is another file. It may say so without need, after a
 * file system was copied: then nodes are heard once more, which is all.
 */
const PLACE = 'place';
const NODES = 'nodes';
const CONFIGURATIONS = 'kubevirts.kubevirt.io';

export interface RenewOptions {
  /** Whether somebody says that it was restored, whatever it looks like. */
  readonly isRestored: boolean;
  readonly random: Random;
}

/**
 * Makes data that was restored ready to be served, and answers what is to be said of that; nothing where it was not. To be called by
 * whoever holds the directory, before it serves.
 */
export async function renewRestoredData(
  directory: string,
  { isRestored, random }: RenewOptions,
): Promise<readonly string[]> {
  const data = join(directory, DATA);
  const file = join(data, DATA_FILE);
  const hasData = existsSync(file) && statSync(file).size > 0;
  const isCopy = hasData && (isRestored || placeOf(data) !== nameOf(file));
  if (hasData && !isCopy) return [];
  let unheard: readonly string[] = [];
  // Makes the file where there is none: what is remembered of it must be there before anything is in it.
  const engine = await openLmdbEngine(data);
  try {
    if (isCopy) unheard = await renewed(engine, random);
  } finally {
    await engine.close();
  }
  writePrivately(join(data, PLACE), nameOf(file));
  if (!isCopy) return [];
  const told = 'The data was restored from a copy: everything that it holds has been given a new version.';
  return unheard.length === 0
    ? [told]
    : [told, `No virtual machine starts before these nodes were heard: ${unheard.join(', ')}`];
}

/** Renews the log, and answers which nodes are to be heard. */
async function renewed(engine: Engine, random: Random): Promise<readonly string[]> {
  let unheard: readonly string[] = [];
  await renewLog(engine, (objects) => {
    unheard = nodesOf(objects);
    return withRestoration(objects, { id: random.uuid(), unheard: [...unheard] });
  });
  return unheard;
}

function placeOf(data: string): string | undefined {
  const path = join(data, PLACE);
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

/** What tells a file from its copies on the same file system. */
function nameOf(file: string): string {
  return `${statSync(file, { bigint: true }).ino}\n`;
}

function nodesOf(objects: readonly LoggedObject[]): readonly string[] {
  return objects
    .filter(({ bucket }) => bucket === NODES)
    .map(({ key }) => key)
    .sort();
}

function withRestoration(objects: readonly LoggedObject[], restoration: Restoration): readonly LoggedObject[] {
  return objects
    .filter(({ bucket }) => bucket === CONFIGURATIONS)
    .map(({ object, ...rest }) => {
      const status = (object['status'] ?? {}) as JsonObject;
      return { ...rest, object: { ...object, status: { ...status, restoration: restoration as JsonObject } } };
    });
}
