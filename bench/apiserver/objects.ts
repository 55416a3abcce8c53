import type { LoadConnection } from '../load-connection.ts';

/** The objects that the benchmarks write: ConfigMaps with 1 KiB of data. */

export const BENCH = 'apiserver';
export const PAYLOAD = 'x'.repeat(1024);
export const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

/** Writers at once when only the outcome matters, not the speed. */
const FILLERS = 128;

let serial = 0;

/** A name that no other object of this run has. */
export function freshName(): string {
  return `object-${String(serial++).padStart(7, '0')}`;
}

/** The text of a ConfigMap; put together by hand, since it is made thousands of times a second. */
export function configMap(name: string, stamp = ''): string {
  const annotations = stamp === '' ? '' : `,"annotations":{"stamp":"${stamp}"}`;
  return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}"${annotations}},"data":{"payload":"${PAYLOAD}"}}`;
}

/** Creates so many more objects. */
export async function fill(connection: LoadConnection, count: number): Promise<void> {
  let left = count;
  await Promise.all(
    Array.from({ length: FILLERS }, async () => {
      while (left-- > 0) await connection.request('POST', CONFIG_MAPS, configMap(freshName()));
    }),
  );
}
