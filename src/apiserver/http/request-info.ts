import { badRequest } from '../../api/status.ts';
import { parseFieldSelector } from '../../machinery/selectors.ts';
import type { RequestInfo } from './message.ts';

/** The Kubernetes URL grammar: what a method and a path ask for. */

/** A map, because over HTTP/2 a method may be any word, `constructor` included. */
const VERBS: ReadonlyMap<string, string> = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);
/** What may follow `/namespaces/{name}` and is a subresource rather than a resource in that namespace. */
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(['status', 'finalize']);

function nonResource(method: string, path: string): RequestInfo {
  return {
    verb: method.toLowerCase(),
    isResource: false,
    path,
    group: '',
    version: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    rest: '',
  };
}

function segmentsOf(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '');
  if (!ENCODED.test(path)) return parts;
  let segments: string[];
  try {
    segments = parts.map(decodeURIComponent);
  } catch (error) {
    throw badRequest(`the path ${JSON.stringify(path)} is not percent-encoded correctly`, error);
  }
  if (segments.some((segment) => HIDDEN.test(segment)))
    throw badRequest(`the path ${JSON.stringify(path)} has segments with encoded slashes, dots or control characters`);
  return segments;
}

/** What cannot be taken as it is. */
// oxlint-disable-next-line no-control-regex -- exactly those are meant
const ENCODED = /[%\u0000-\u001f\u007f]/;
/** Segments that a proxy or a file system might read differently than we do. */
const AMBIGUOUS = /^[^/]|\/\/|\/\.{1,2}(\/|$)/;
/** The same, behind percent signs: whoever is asked to authorize `a%2Fb` must not mean something else than who serves it. */
// oxlint-disable-next-line no-control-regex -- exactly those are meant
const HIDDEN = /\/|^\.{1,2}$|[\u0000-\u001f\u007f]/;

/** Parses the request line. Throws 400 for paths that cannot be decoded, or that could be read in two ways. */
export function parseRequestInfo(method: string, path: string, query: URLSearchParams): RequestInfo {
  if (AMBIGUOUS.test(path))
    throw badRequest(`the path ${JSON.stringify(path)} does not begin with a slash, or has empty or dotted segments`);
  const parts = segmentsOf(path);
  const isCore = parts[0] === 'api';
  const prefixLength = isCore ? 2 : 3;
  if ((!isCore && parts[0] !== 'apis') || parts.length <= prefixLength) return nonResource(method, path);
  const group = isCore ? '' : (parts[1] ?? '');
  const version = (isCore ? parts[1] : parts[2]) ?? '';
  let at = prefixLength;
  let namespace = '';
  if (parts[at] === 'namespaces' && parts.length > at + 1) {
    namespace = parts[at + 1] ?? '';
    // `/namespaces/x` and its subresources speak of the namespace itself, anything longer of what is inside it.
    if (parts.length > at + 2 && !NAMESPACE_SUBRESOURCES.has(parts[at + 2] ?? '')) at += 2;
  }
  const resource = parts[at] ?? '';
  const subresource = parts[at + 2] ?? '';
  const rest = parts.length > at + 3 ? parts.slice(at + 3).join('/') : '';
  const named = verbAndName(method, parts[at + 1] ?? '', query);
  return { isResource: true, path, group, version, namespace, resource, subresource, rest, ...named };
}

function verbAndName(
  method: string,
  name: string,
  query: URLSearchParams,
): Pick<RequestInfo, 'verb' | 'name' | 'fieldRequirements'> {
  // No verb, rather than the method's own name: `watch` and `deletecollection` are no methods, though anyone can send them.
  const verb = VERBS.get(method) ?? '';
  if (name !== '') return { verb, name };
  if (verb === 'delete') return { verb: 'deletecollection', name };
  if (verb !== 'get') return { verb, name };
  const all = isTrue(query.get('watch')) ? 'watch' : 'list';
  const selector = query.get('fieldSelector');
  if (!selector) return { verb: all, name };
  const fieldRequirements = parseFieldSelector(selector);
  // A list of one name is authorized by that name, as a get would be.
  const byName = fieldRequirements.find((each) => each.path === 'metadata.name' && each.equals);
  return { verb: all, name: byName?.value ?? '', fieldRequirements };
}

/** A boolean query parameter as Go's strconv.ParseBool, where present-but-empty means true. */
export function isTrue(value: string | null): boolean {
  return value !== null && !['0', 'f', 'F', 'false', 'False', 'FALSE'].includes(value);
}
