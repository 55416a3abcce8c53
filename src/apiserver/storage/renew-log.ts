import type { JsonObject } from '../../api/meta.ts';
import type { Engine, LogEntry } from './port.ts';
import { StorageError } from './port.ts';

/**
 * How far revisions leap when a log is renewed. What came after a backup was given revisions that nobody knows any more; a
 * thousand writes a second take 34 years to get through these, and a log can be renewed thousands of times.
 */
const LEAP = 2 ** 40;

/** An object of a log, by its bucket and key. */
export interface LoggedObject {
  readonly bucket: string;
  readonly key: string;
  readonly object: JsonObject;
}

/** Sees all objects, and answers those that are to be other than they were, by the same buckets and keys. */
export type Amend = (objects: readonly LoggedObject[]) => readonly LoggedObject[];

/**
 * Makes a log that was put back from a backup safe to serve: every object is written anew, with a revision above all that
 * were ever given out. Else a client that had read something of after the backup could take it for newer than what there
 * is, a watch could resume where another history went on, and a write of before could come true. All or nothing is
 * written; answers how many objects there are. The engine is to be closed afterwards.
 */
export async function renewLog(engine: Engine, amend: Amend = () => []): Promise<number> {
  const live = new Map<string, LogEntry>();
  const revisions: number[] = [];
  await engine.load((entry) => {
    revisions.push(entry.revision);
    const name = nameOf(entry);
    if (entry.type === 'put') live.set(name, entry);
    else live.delete(name);
  });
  const objects = [...live.values()].map((entry) => ({ ...entry, object: objectOf(entry) }));
  const amended = new Map(amend(objects).map((each) => [nameOf(each), each.object]));
  const first = (revisions.at(-1) ?? 0) + LEAP;
  if (!Number.isSafeInteger(first + objects.length))
    throw new StorageError('the log was renewed too often', { fatal: true });
  const renewed = objects.map(({ bucket, key, object }, index): LogEntry => {
    const revision = first + index;
    const now = amended.get(nameOf({ bucket, key })) ?? object;
    const metadata = { ...(now['metadata'] as JsonObject), resourceVersion: String(revision) };
    return { revision, type: 'put', bucket, key, text: JSON.stringify({ ...now, metadata }), previous: 0 };
  });
  await engine.commit(renewed, revisions);
  return renewed.length;
}

function nameOf({ bucket, key }: { readonly bucket: string; readonly key: string }): string {
  return `${bucket}\n${key}`;
}

function objectOf({ revision, text }: LogEntry): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch (error) {
    throw new StorageError(`the log entry of revision ${revision} is damaged`, { fatal: true, cause: error });
  }
}
