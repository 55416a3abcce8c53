import type { Anything } from '../../support/api.ts';
import type { Request } from './request.ts';

/** Where two answers to one request are not the same. An absent value is undefined. */
export interface Difference {
  /** The group and the name of the request, with a slash between. */
  readonly request: string;
  /** Where in the answer, such as `body.metadata.name`. */
  readonly at: string;
  readonly embedded: unknown;
  readonly real: unknown;
}

/** Every place in which two answers differ; when one of them is refused and the other is not, or for another reason, that is all. */
export function compare(request: string, embedded: Anything, real: Anything): Difference[] {
  if (embedded.status === real.status) return differences(request, embedded, real, '');
  const outcome = ({ status, body }: Anything): string =>
    `${status} ${body?.message ?? (typeof body === 'string' ? body : (body?.kind ?? ''))}`;
  return [{ request, at: 'status', embedded: outcome(embedded), real: outcome(real) }];
}

/** The status with which both answer a request that was meant otherwise; undefined where it is as it was meant, or they differ. */
export function misunderstood({ refused }: Request, embedded: Anything, real: Anything): number | undefined {
  const { status } = embedded;
  const isMeant = refused === undefined ? status >= 200 && status < 300 : status === refused;
  return isMeant || status !== real.status ? undefined : status;
}

/** What only one of them has is one place. */
function differences(request: string, embedded: Anything, real: Anything, at: string): Difference[] {
  if (isContainer(embedded) && isContainer(real) && Array.isArray(embedded) === Array.isArray(real)) {
    const keys = new Set([...Object.keys(embedded), ...Object.keys(real)]);
    return [...keys].flatMap((key) =>
      differences(request, own(embedded, key), own(real, key), at === '' ? key : `${at}.${key}`),
    );
  }
  return Object.is(embedded, real) ? [] : [{ request, at, embedded, real }];
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function own(value: Anything, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

/** One line for people. */
export function describeDifference({ request, at, embedded, real }: Difference): string {
  const say = (value: unknown): string => JSON.stringify(value) ?? 'absent';
  return `${request}: ${at}\n    embedded ${say(embedded)}\n    real     ${say(real)}`;
}
