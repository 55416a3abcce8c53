import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Restoration } from '../api/kubevirt/kube-virt.ts';
import type { JsonObject } from '../api/meta.ts';
import { DATA_FILE, openLmdbEngine } from '../apiserver/storage/lmdb-engine.ts';
import type { Engine } from '../apiserver/storage/port.ts';
import { type LoggedObject, renewLog } from '../apiserver/storage/renew-log.ts';
import type { Clock, Random } from '../env/ports.ts';
import { writePrivately } from './write-privately.ts';

/**
 * Data of the API that was put back from a copy. What happened since the copy was made is known to nobody but the nodes: so
 * it is served with newer versions than were ever given out, and no guest starts before all nodes were heard.
 */

const DATA = 'data';
/**
 * Beside the data, and in no backup: which file the data was in when it was last served, and by what word. A copy is another file, or
 * has another word in it. It may look like a copy without need, after a file system was copied: then nodes are heard once more.
 */
const SERVED = 'served';
/** Served by whom, before anybody has. */
const NOBODY = '';
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
const NODES = 'nodes';
const CONFIGURATIONS = 'kubevirts.kubevirt.io';

export interface RenewOptions {
  /** Whether somebody says that it was restored, whatever it looks like. */
  readonly isRestored: boolean;
  readonly random: Random;
  readonly clock: Pick<Clock, 'now'>;
}

/**
 * Makes data that was restored ready to be served, and answers what is to be said of that; nothing where it was not. To be called by
 * whoever holds the directory, before it serves.
 */
export async function renewRestoredData(
  directory: string,
  { isRestored, random, clock }: RenewOptions,
): Promise<readonly string[]> {
  const data = join(directory, DATA);
  const file = join(data, DATA_FILE);
  const hasData = existsSync(file) && statSync(file).size > 0;
  const engine = await openLmdbEngine(data);
  try {
    const known = servedIn(directory);
    const isCopy = hasData && (isRestored || isOther(engine.served, nameOf(file), known));
    const word = random.uuid();
    const remember = (...words: string[]): void => {
      writePrivately(join(directory, SERVED), JSON.stringify({ file: nameOf(file), words } satisfies Served));
    };
    const news = isCopy ? await renewed(engine, random, clock.now()) : [];
    // Whichever of the two it has when this process dies here.
    if (!isCopy) remember(engine.served ?? NOBODY, word);
    await engine.serve(word);
    remember(word);
    return news;
  } finally {
    await engine.close();
  }
}

interface Served {
  readonly file: string;
  readonly words: readonly string[];
}

function servedIn(directory: string): Served | undefined {
  const path = join(directory, SERVED);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Served) : undefined;
}

/** Whether data is not that which was last served here. Data of before there were such words is taken as it is. */
function isOther(word: string | undefined, file: string, known: Served | undefined): boolean {
  if (!known) return word !== undefined;
  return !known.words.includes(word ?? NOBODY) || known.file !== file;
}

/** What tells a file from its copies on the same file system. */
function nameOf(file: string): string {
  return String(statSync(file, { bigint: true }).ino);
}

/** Renews the log, and answers what is to be said of it. */
async function renewed(engine: Engine, random: Random, nowMs: number): Promise<readonly string[]> {
  let [unheard, back]: [readonly string[], readonly LoggedObject[]] = [[], []];
  await renewLog(engine, nowMs, (objects) => {
    unheard = [...new Set([...nodesOf(objects), ...stillUnheardIn(objects)])].sort();
    back = backInService(objects);
    return [...withRestoration(objects, { id: random.uuid(), unheard: [...unheard] }), ...back];
  });
  const news = ['The data was restored from a copy: everything that it holds has been given a new version.'];
  if (back.length > 0)
    news.push(
      `These nodes were out of service when it was made, which nobody can say of today: ${back.map(({ key }) => key).join(', ')}. Taint those again that are`,
    );
  if (unheard.length > 0) news.push(`No virtual machine starts before these nodes were heard: ${unheard.join(', ')}`);
  return news;
}

/** Whoever was not heard since the restore before. */
function stillUnheardIn(objects: readonly LoggedObject[]): readonly string[] {
  return objects
    .filter(({ bucket }) => bucket === CONFIGURATIONS)
    .flatMap(
      ({ object }) => (object['status'] as { restoration?: Restoration } | undefined)?.restoration?.unheard ?? [],
    );
}

/** Nodes without the word that they are off for good: they may have come back since, and run guests. */
function backInService(objects: readonly LoggedObject[]): readonly LoggedObject[] {
  return objects
    .filter(({ bucket }) => bucket === NODES)
    .flatMap(({ object, ...rest }) => {
      const spec = (object['spec'] ?? {}) as { taints?: readonly { readonly key?: string }[] };
      const taints = (spec.taints ?? []).filter(({ key }) => key !== OUT_OF_SERVICE);
      if (taints.length === (spec.taints ?? []).length) return [];
      return [{ ...rest, object: { ...object, spec: { ...spec, taints } as JsonObject } }];
    });
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
