/**
 * What a request is about, as metrics name it: KubeVirt's labels `resource` and `verb`, and the `url` of client-go, in which
 * names are left out. There are as many of each as there are kinds, however many objects there are.
 */
export interface RequestShape {
  /** `LIST`, `CREATE` … or `none` where no resource is asked for. */
  readonly verb: string;
  /** `pods` … or `none`. */
  readonly resource: string;
  /** The path without names and queries. */
  readonly path: string;
}

const NONE = 'none';
/** What is asked of a namespace itself, and of no resource in it. */
const OF_NAMESPACES: ReadonlySet<string> = new Set(['status', 'finalize']);
/** As client-go writes `{namespace}` and `{name}` in a URL. */
const NAMESPACE = '%7Bnamespace%7D';
const NAME = '%7Bname%7D';
const VERBS: ReadonlyMap<string, string> = new Map([
  ['POST', 'CREATE'],
  ['PUT', 'UPDATE'],
]);

export function shapeOfRequest(method: string, pathAndQuery: string): RequestShape {
  const segments = pathWithoutQuery(pathAndQuery).split('/');
  // '' and api and a version, or '' and apis and a group and a version.
  const at = segments[1] === 'api' ? 3 : segments[1] === 'apis' ? 4 : segments.length;
  if (segments.length <= at) return { verb: NONE, resource: NONE, path: segments.slice(0, 2).join('/') };
  const isInNamespace =
    segments[at] === 'namespaces' && segments.length > at + 2 && !OF_NAMESPACES.has(segments[at + 2] ?? '');
  const [prefix, [resource = NONE, name, subresource]] = isInNamespace
    ? [[...segments.slice(0, at), 'namespaces', NAMESPACE], segments.slice(at + 2)]
    : [segments.slice(0, at), segments.slice(at)];
  // What follows a subresource is somebody else's path.
  const path = [...prefix, resource, ...(name === undefined ? [] : [NAME]), ...(subresource ? [subresource] : [])];
  const isPlural = name === undefined;
  const verb = method === 'GET' ? readVerb(pathAndQuery, isPlural) : (VERBS.get(method) ?? method);
  return { verb, resource, path: path.join('/') };
}

function readVerb(pathAndQuery: string, isPlural: boolean): string {
  // The client writes its queries without abbreviations.
  if (pathAndQuery.endsWith('watch=true') || pathAndQuery.includes('watch=true&')) return 'WATCH';
  return isPlural ? 'LIST' : 'GET';
}

function pathWithoutQuery(text: string): string {
  const at = text.indexOf('?');
  return at < 0 ? text : text.slice(0, at);
}
