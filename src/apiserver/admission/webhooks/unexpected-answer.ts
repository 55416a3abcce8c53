import type { WebhookResponse } from './transport.ts';

/** What Kubernetes' client says of an HTTP status that is no success; administrators search for these sentences. */

/** How much of a body is worth quoting. */
const QUOTED_LENGTH_MAX = 2048;

const SENTENCES: ReadonlyMap<number, string> = new Map([
  [400, 'the server rejected our request for an unknown reason'],
  [401, 'the server has asked for the client to provide credentials'],
  [404, 'the server could not find the requested resource'],
  [405, 'the server does not allow this method on the requested resource'],
  [409, 'the server reported a conflict'],
  [422, 'the server rejected our request due to an error in our request'],
  [429, 'the server has received too many requests and has asked us to try again later'],
  [503, 'the server is currently unable to handle the request'],
  [504, 'the server was unable to return a response in the time allotted, but may still be processing the request'],
]);

/** The sentence for an answer outside 200..299. */
export function describeAnswer({ status, body }: WebhookResponse): string {
  const known = SENTENCES.get(status);
  if (known !== undefined) return known;
  const quoted = Buffer.from(body.subarray(0, QUOTED_LENGTH_MAX)).toString('utf8').trim() || 'unknown';
  if (status === 403) return quoted;
  if (status >= 500)
    return `an error on the server (${JSON.stringify(quoted)}) has prevented the request from succeeding`;
  return `the server responded with the status code ${status} but did not return more information`;
}
