import type { LoadConnection } from '../load-connection.ts';

/** What was written to the API, counted by the server itself, by what was written. */
export type Writes = ReadonlyMap<string, number>;

const LINE =
  /^apiserver_request_total\{verb="(POST|PUT|PATCH|APPLY|DELETE)".*resource="([^"]*)",subresource="([^"]*)".*code="2\d\d"\} (\d+)$/gm;
/** Asked, not written. */
const REVIEWS = /reviews$/;
/** Written whether or not anything happens. */
const LEASES = 'leases';

export async function writesSoFar(connection: LoadConnection): Promise<Writes> {
  const writes = new Map<string, number>();
  for (const [, verb = '', resource = '', subresource, count] of (await connection.text('GET', '/metrics')).matchAll(
    LINE,
  )) {
    if (resource === LEASES || REVIEWS.test(resource)) continue;
    const what = `${verb} ${resource}${subresource ? `/${subresource}` : ''}`;
    writes.set(what, (writes.get(what) ?? 0) + Number(count));
  }
  return writes;
}

/** What was written between the two, per machine, most first. */
export function perMachine(before: Writes, after: Writes, machines: number): Record<string, number> {
  const entries = [...after].map(([what, count]) => [what, (count - (before.get(what) ?? 0)) / machines] as const);
  return Object.fromEntries(entries.filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a));
}
