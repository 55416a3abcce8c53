import { get, type Group, inNamespace, mergePatch, post, refused, remove, silently, watch } from '../request.ts';

const MAPS = '/api/v1/namespaces/$ns/configmaps';
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const PARTIAL = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
/** Whoever publishes certificates to each namespace writes a map there as well. */
const MINE = 'watch=true&labelSelector=mine';

export const WATCHES: Group = {
  name: 'watches',
  requests: inNamespace([
    silently(post('makes a', MAPS, { metadata: { name: 'a', labels: { mine: 'yes' } } }, { save: 'a' })),
    silently(mergePatch('changes a', `${MAPS}/a`, { data: { a: '1' } })),
    silently(post('makes b', MAPS, { metadata: { name: 'b', labels: { mine: 'yes' } } }, { save: 'b' })),
    silently(mergePatch('hides a', `${MAPS}/a`, { metadata: { labels: { mine: null } } })),
    silently(mergePatch('shows a', `${MAPS}/a`, { metadata: { labels: { mine: 'again' } } })),
    silently(remove('deletes b', `${MAPS}/b`)),
    get('what is there', `${MAPS}?labelSelector=mine`, { save: 'list' }),
    watch('watches from a version', `${MAPS}?${MINE}&resourceVersion={{a.metadata.resourceVersion}}`, 5),
    watch(
      'watches one by its name',
      `${MAPS}?watch=true&fieldSelector=metadata.name%3Da&resourceVersion={{a.metadata.resourceVersion}}`,
      3,
    ),
    watch('watches from now', `${MAPS}?${MINE}`, 1),
    watch('watches from any version', `${MAPS}?${MINE}&resourceVersion=0`, 1),
    watch(
      'watches for a second',
      `${MAPS}?${MINE}&resourceVersion={{list.metadata.resourceVersion}}&timeoutSeconds=1`,
      0,
    ),
    watch(
      'watches with bookmarks for a second',
      `${MAPS}?${MINE}&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={{list.metadata.resourceVersion}}`,
      0,
      {
        view: (events) => events.map(({ type }: { type: string }) => type),
      },
    ),
    watch(
      'watches with what is there at first',
      `${MAPS}?${MINE}&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan`,
      2,
    ),
    watch(
      'watches with what is there at first, from any version',
      `${MAPS}?${MINE}&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion=0`,
      2,
    ),
    watch(
      'watches without what is there at first',
      `${MAPS}?${MINE}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1`,
      0,
      {
        view: (events) => events.map(({ type }: { type: string }) => type),
      },
    ),
    get(
      'wants initial events without bookmarks',
      `${MAPS}?${MINE}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1`,
      { view: (text) => typeof text },
    ),
    refused(422).get(
      'wants initial events without a match',
      `${MAPS}?${MINE}&sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=1`,
    ),
    refused(422).get(
      'wants initial events that match exactly',
      `${MAPS}?${MINE}&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=Exact&timeoutSeconds=1`,
    ),
    refused(422).get(
      'matches without initial events',
      `${MAPS}?${MINE}&resourceVersionMatch=NotOlderThan&resourceVersion=1&timeoutSeconds=1`,
    ),
    watch('watches a table', `${MAPS}?${MINE}&resourceVersion={{a.metadata.resourceVersion}}`, 5, {
      headers: { accept: TABLE },
    }),
    watch('watches metadata', `${MAPS}?${MINE}&resourceVersion={{a.metadata.resourceVersion}}`, 2, {
      headers: { accept: PARTIAL },
    }),
    get('watches as YAML', `${MAPS}?${MINE}&timeoutSeconds=1`, {
      headers: { accept: 'application/yaml' },
      view: (text) => typeof text,
    }),
    refused(406).get('watches as XML', `${MAPS}?${MINE}&timeoutSeconds=1`, { headers: { accept: 'application/xml' } }),
    get('watches from a bad version', `${MAPS}?${MINE}&resourceVersion=x&timeoutSeconds=1`),
    watch('watches from a version of the future', `${MAPS}?${MINE}&resourceVersion=99999999&timeoutSeconds=1`, 0),
    refused(400).get('watches by a bad label', `${MAPS}?watch=true&labelSelector=a%20b&timeoutSeconds=1`),
    refused(400).get('watches by an unknown field', `${MAPS}?watch=true&fieldSelector=data.a%3Db&timeoutSeconds=1`),
    refused(400).get('watches for a bad time', `${MAPS}?watch=true&timeoutSeconds=x`),
    get('watches perhaps', `${MAPS}?watch=perhaps&labelSelector=mine&timeoutSeconds=1`, { view: ({ kind }) => kind }),
    watch(
      'watches in the old way',
      `/api/v1/watch/namespaces/$ns/configmaps?labelSelector=mine&resourceVersion={{a.metadata.resourceVersion}}`,
      2,
    ),
    watch(
      'watches one in the old way',
      `/api/v1/watch/namespaces/$ns/configmaps/a?resourceVersion={{a.metadata.resourceVersion}}`,
      2,
    ),
    get('gets one that is to be watched', `${MAPS}/a?watch=true&resourceVersion={{a.metadata.resourceVersion}}`),
    watch(
      'watches all namespaces',
      `/api/v1/configmaps?${MINE}&fieldSelector=metadata.namespace%3D$ns&resourceVersion={{a.metadata.resourceVersion}}`,
      2,
    ),
    watch(
      'watches where no namespace is',
      `/api/v1/namespaces/no-such-namespace/configmaps?watch=true&timeoutSeconds=1`,
      0,
    ),
    refused(404).get('watches what is not there', '/api/v1/namespaces/$ns/nothings?watch=true&timeoutSeconds=1'),
  ]),
};
