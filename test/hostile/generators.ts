import * as fc from 'fast-check';
import { stringify } from 'yaml';
import { apiVersionOf, type Json, type JsonObject } from '../../src/api/meta.ts';
import type { ResourceDefinition } from '../../src/api/resource.ts';
import { manifests, subresourceManifests } from './manifests.ts';
import { valueOf } from './schema-values.ts';
import { anyJson, own, scalars, words } from './wild-values.ts';

/** Requests that no client should send, near enough to good ones to get far into the server. */

export interface WildRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Mostly what is usual, now and then what is not: a request that is wrong in every way gets nowhere. */
function mostly<T>(usual: fc.Arbitrary<T>, unusual: fc.Arbitrary<T>, weight = 12): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: unusual });
}

const goodNames = fc.constantFrom('one', 'two');
const names = mostly(
  goodNames,
  fc.oneof(words.map(encodeURIComponent), fc.constantFrom('%', '%2F', '%00', '..', '', 'x'.repeat(5000))),
);

function metadataOf(definition: ResourceDefinition, name: string): fc.Arbitrary<Json> {
  const schema = definition.schema.properties?.['metadata'] ?? {};
  const more = fc.constant(undefined).chain(() => valueOf(schema, 1));
  return mostly(
    fc.constant<Json>({ name, labels: { app: 'web' } }),
    fc.oneof(
      more.map((meta) => ({ ...(meta as JsonObject), name })),
      more,
      anyJson,
    ),
    3,
  );
}

/** A good object of the kind; one bent in a few places; or one of which only the types are right. */
function objectFor(definition: ResourceDefinition, name: string): fc.Arbitrary<Json> {
  const { group, version, plural, kind } = definition;
  const identity = { apiVersion: apiVersionOf(group, version), kind };
  const good = { ...identity, ...manifests.get(`${group}/${plural}`) };
  const bent = fc.tuple(fc.array(bending, { maxLength: 3 }), fc.nat({ max: 20 })).map(([bendings, dice]) => {
    const copy = JSON.parse(JSON.stringify(manifests.get(`${group}/${plural}`) ?? {})) as JsonObject;
    const whole = dice === 0 ? { ...identity, ...copy } : copy;
    for (const bend of bendings) bend(whole);
    return dice === 0 ? whole : { ...identity, ...whole };
  });
  const properties = Object.entries(definition.schema.properties ?? {}).filter(([field]) => field !== 'metadata');
  const drawn =
    properties.length === 0
      ? fc.constant(good)
      : fc
          .constantFrom(...properties)
          .chain(([field, schema]) => valueOf(schema, 1).map((value) => ({ ...good, [field]: value })));
  return fc
    .tuple(fc.oneof(bent, drawn), metadataOf(definition, name))
    .map(([value, metadata]) => (isObject(value) && metadata !== undefined ? { metadata, ...value } : value));
}

type Bend = (root: Json) => void;

/** Changes one place of a value, chosen by numbers so that it can be shrunk. */
const bending: fc.Arbitrary<Bend> = fc
  .tuple(fc.array(fc.nat({ max: 7 }), { minLength: 1, maxLength: 8 }), fc.nat({ max: 5 }), anyJson, words)
  .map(([route, action, value, word]) => (root) => {
    let parent = root;
    let key: string | undefined;
    for (const turn of route) {
      const below = key === undefined ? parent : (parent as JsonObject)[key];
      if (typeof below !== 'object' || below === null || Object.keys(below).length === 0) break;
      parent = below;
      key = Object.keys(below)[turn % Object.keys(below).length];
    }
    if (typeof parent !== 'object' || parent === null || key === undefined) return;
    const holder = parent as JsonObject;
    const present = holder[key] as Json;
    if (action === 0) delete holder[key];
    else if (action === 1 && Array.isArray(parent)) parent.push(value);
    else if (action === 1) own(holder, word, value);
    else if (action === 2) holder[key] = [present, present];
    else if (action === 3) holder[key] = { [word]: present };
    else if (action === 4 && Array.isArray(present)) present.push(...JSON.parse(JSON.stringify(present)));
    else own(holder, key, value);
  });

const SEGMENTS =
  `metadata labels annotations spec status data template containers managedFields a 0 - -1 ~1 ~0 __proto__
constructor name finalizers rules`.split(/\s+/);
const pointers = fc
  .array(fc.constantFrom(...SEGMENTS), { maxLength: 4 })
  .map((parts) => parts.map((part) => `/${part}`).join(''));

const operations = fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'nonsense');

const jsonPatches: fc.Arbitrary<Json> = fc.array(
  fc.tuple(operations, pointers, pointers, anyJson).map(([op, path, from, value]) => ({ op, path, from, value })),
  { maxLength: 5 },
);

const DIRECTIVES = `$patch $retainKeys $deleteFromPrimitiveList/finalizers $deleteFromPrimitiveList
$setElementOrder/containers $setElementOrder/finalizers $setElementOrder`.split(/\s+/);
const directives: fc.Arbitrary<JsonObject> = fc
  .tuple(fc.constantFrom(...DIRECTIVES), fc.oneof(fc.constantFrom<Json>('delete', 'replace', 'merge'), anyJson))
  .map(([directive, value]) => ({ [directive]: value }));

/** A directive somewhere in an object. */
function directed(object: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  return fc
    .tuple(object, directives, fc.constantFrom('metadata', 'spec', 'data', ''))
    .map(([value, directive, field]) => {
      if (!isObject(value)) return directive;
      if (field === '') return { ...value, ...directive };
      const present = value[field] ?? {};
      return { ...value, [field]: isObject(present) ? { ...present, ...directive } : directive };
    });
}

const deleteOptions: fc.Arbitrary<Json> = fc.record(
  {
    kind: fc.constant('DeleteOptions'),
    apiVersion: mostly(fc.constant('v1'), words),
    gracePeriodSeconds: mostly(fc.constantFrom<Json>(0, 30), scalars),
    propagationPolicy: mostly<Json>(fc.constantFrom('Background', 'Orphan', 'Foreground'), anyJson),
    preconditions: mostly<Json>(fc.constant({ uid: 'x' }), anyJson),
    dryRun: mostly<Json>(fc.constant(['All']), anyJson),
    orphanDependents: mostly<Json>(fc.boolean(), scalars),
  },
  { requiredKeys: ['kind'] },
) as fc.Arbitrary<Json>;

const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
];
const OTHER_TYPES = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf', 'text/plain', ''];

function contentTypeFor(method: string): fc.Arbitrary<string> {
  const usual =
    method === 'PATCH' ? fc.constantFrom(...PATCH_TYPES) : fc.constantFrom('application/json', 'application/yaml');
  return mostly(usual, fc.constantFrom(...PATCH_TYPES, ...OTHER_TYPES), 20);
}

interface Place {
  readonly definition: ResourceDefinition;
  readonly name: string;
  readonly path: string;
  readonly subresource: string;
}

function bodyFor(place: Place, method: string, contentType: string): fc.Arbitrary<Json> {
  const small = subresourceManifests.get(place.subresource);
  const object = small ? mostly<Json>(fc.constant(small), anyJson, 3) : objectFor(place.definition, place.name);
  if (method === 'DELETE') return mostly(deleteOptions, anyJson);
  if (contentType.includes('json-patch')) return mostly(jsonPatches, anyJson);
  if (contentType.includes('strategic')) return fc.oneof(object, directed(object));
  return mostly(object, anyJson, 20);
}

/** Text into bytes, once in a while damaged on the way. */
function damaged(text: string): fc.Arbitrary<Uint8Array> {
  const bytes = Buffer.from(text);
  const last = Math.max(0, bytes.length - 1);
  const flipped = fc.tuple(fc.nat({ max: last }), fc.nat({ max: 255 })).map(([index, value]) => {
    const copy = Buffer.from(bytes);
    if (copy.length > 0) copy[index] = value;
    return copy;
  });
  const cut = fc.nat({ max: last }).map((length) => bytes.subarray(0, length));
  return mostly<Uint8Array>(fc.constant(bytes), fc.oneof(cut, flipped, fc.uint8Array({ maxLength: 40 })), 30);
}

const PARAMETERS: { readonly [name: string]: readonly string[] } = {
  labelSelector: ['a=b,c!=d', 'a in (b,c)', '!app', 'app', 'app notin (x)', 'a>1', '(((', 'a in'],
  fieldSelector: ['metadata.name=one', 'metadata.name!=one,metadata.namespace=wild', 'a\\,b=c', 'spec.nodeName='],
  limit: ['1', '0', '-1', '99999999999'],
  continue: ['e30', 'eyJ2IjoiIn0', Buffer.from('{"v":"godwit.dev/v1","rv":1,"start":"a"}').toString('base64url')],
  resourceVersion: ['0', '1', '5', '999999999'],
  resourceVersionMatch: ['Exact', 'NotOlderThan'],
  watch: ['true', '1', '0'],
  timeoutSeconds: ['1', '0', '999999999'],
  allowWatchBookmarks: ['true'],
  sendInitialEvents: ['true', 'false'],
  fieldManager: ['me', 'x'.repeat(200), '\u0000'],
  fieldValidation: ['Strict', 'Warn', 'Ignore'],
  force: ['true', 'false'],
  dryRun: ['All'],
  includeObject: ['Object', 'None'],
  gracePeriodSeconds: ['0', '1', '-1', 'x'],
  propagationPolicy: ['Foreground', 'Orphan'],
  pretty: ['true'],
};

const parameters = fc
  .constantFrom(...Object.entries(PARAMETERS))
  .chain(([name, values]) =>
    mostly(fc.constantFrom(...values), fc.oneof(words, fc.string({ maxLength: 10 })), 6).map(
      (value): [string, string] => [name, value],
    ),
  );

const queries = fc.array(mostly(parameters, fc.tuple(words, words), 20), { maxLength: 3 });

function queryFor(method: string, contentType: string): fc.Arbitrary<string> {
  const needed: [string, string][] = contentType.includes('apply') ? [['fieldManager', 'me']] : [];
  const some = mostly(fc.constant<[string, string][]>([]), queries, method === 'GET' ? 1 : 5);
  return some.map((entries) => new URLSearchParams([...needed, ...entries]).toString());
}

const FORMS = ['Table', 'PartialObjectMetadata', 'Nonsense'].map(
  (as) => `application/json;as=${as};v=v1;g=meta.k8s.io`,
);
const OTHER_FORMS = [
  'application/yaml',
  '*/*',
  'text/html',
  ';;;,=',
  'application/vnd.kubernetes.protobuf,application/json',
];
const accepts = mostly(fc.constant('application/json'), fc.constantFrom(...FORMS, ...OTHER_FORMS), 5);

const methods = mostly(
  fc.constantFrom('GET', 'POST', 'POST', 'PUT', 'PUT', 'PATCH', 'PATCH', 'PATCH', 'DELETE'),
  fc.constantFrom('HEAD', 'OPTIONS', 'TRACE', 'QUERY', 'constructor', '__proto__', 'get', ''),
  30,
);

function placeIn(definition: ResourceDefinition, name: string, namespace: string, method: string): fc.Arbitrary<Place> {
  const { group, version, plural, namespaced } = definition;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const collection = namespaced ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`;
  const item = `${collection}/${name}`;
  const at = (path: string, subresource = ''): Place => ({ definition, name, path, subresource });
  const subresources = (definition.subresources ?? []).map((each) => at(`${item}/${each.name}`, each.name));
  const odd = [`${root}/${plural}`, `${item}/`, `${item}/nonsense`, `${item}/status/more`, `${root}/x/${plural}`, root];
  const usual = method === 'POST' ? [at(collection)] : method === 'GET' ? [at(collection), at(item)] : [at(item)];
  return mostly(
    subresources.length === 0 ? fc.constantFrom(...usual) : fc.constantFrom(...usual, ...usual, ...subresources),
    fc.constantFrom(...[...odd, `${collection}//`, `${root}/../..`, collection, item].map((path) => at(path))),
    15,
  );
}

/** A request to one of these resources. */
export function wildRequest(definitions: readonly ResourceDefinition[]): fc.Arbitrary<WildRequest> {
  const namespaces = mostly(fc.constant('wild'), names, 20);
  return fc
    .tuple(fc.constantFrom(...definitions), names, namespaces, methods, accepts)
    .filter(([{ verbs }, , , method]) => method !== 'PATCH' || !verbs || verbs.includes('patch'))
    .chain(([definition, name, namespace, method, accept]) =>
      fc.tuple(placeIn(definition, name, namespace, method), contentTypeFor(method)).chain(([place, contentType]) =>
        fc.tuple(bodyFor(place, method, contentType), queryFor(method, contentType)).chain(([body, query]) =>
          damaged(method === 'GET' ? '' : encode(body, contentType)).map((bytes) => ({
            method,
            path: place.path,
            query,
            headers: { accept, 'content-type': contentType, 'user-agent': 'wild/1' },
            body: bytes,
          })),
        ),
      ),
    );
}

/** As YAML where that is announced and the value can be said in it, which half of the time is JSON all the same. */
function encode(body: Json, contentType: string): string {
  const json = JSON.stringify(body);
  return contentType.includes('yaml') && json.length % 2 === 0 && !json.includes('__proto__') ? stringify(body) : json;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
