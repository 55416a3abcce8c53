import type { JsonObject } from '../../api/meta.ts';
import type { Engine, LogEntry } from './port.ts';
import { StorageError } from './port.ts';

/**
 * What came after a backup was given revisions that nobody knows any more. So those of a renewed log begin where the time says:
 * no log has had a quarter of a million writes in each second since 1970, and the same backup begins elsewhere each time.
 */
const REVISIONS_PER_SECOND = 2 ** 18;
/** Where a clock is wrong, they leap at least that far. */
const LEAP = 2 ** 32;
/** Versions have at most fifteen digits. */
const REVISION_MAX = 1e15;

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
export async function renewLog(engine: Engine, nowMs: number, amend: Amend = () => []): Promise<number> {
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
  const first = Math.max((revisions.at(-1) ?? 0) + LEAP, Math.floor(nowMs / 1000) * REVISIONS_PER_SECOND);
  if (first + objects.length >= REVISION_MAX)
    throw new StorageError('the log cannot be given newer versions: is the clock right?', { fatal: true });
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
