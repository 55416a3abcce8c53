import { get, type Group, mergePatch, onNode, post, put, refused, remove, silently } from '../request.ts';

const MAPS = '/api/v1/namespaces/$ns/configmaps';
const PODS = '/api/v1/namespaces/$ns/pods';
const make = (name: string, metadata: object = {}): ReturnType<typeof post> =>
  silently(post(`makes ${name}`, MAPS, { metadata: { name, ...metadata } }, { save: name }));
const pod = (name: string): ReturnType<typeof post> =>
  silently(
    post(
      `makes the pod ${name}`,
      PODS,
      {
        metadata: { name },
        spec: {
          schedulerName: 'nobody',
          nodeName: '$ns',
          automountServiceAccountToken: false,
          containers: [{ name: 'main', image: 'example.org/main:1' }],
        },
      },
      { save: name },
    ),
  );

export const DELETIONS: Group = {
  name: 'deletions',
  requests: onNode([
    make('plain'),
    remove('deletes', `${MAPS}/plain`),
    refused(404).remove('deletes what is not there', `${MAPS}/plain`),
    refused(404).get('gets what was deleted', `${MAPS}/plain`),
    make('options'),
    refused(409).remove('deletes with another uid', `${MAPS}/options`, {
      preconditions: { uid: '11111111-2222-3333-4444-555555555555' },
    }),
    refused(409).remove('deletes with another version', `${MAPS}/options`, { preconditions: { resourceVersion: '1' } }),
    remove('deletes with a body of another kind', `${MAPS}/options`, { apiVersion: 'v1', kind: 'Pod' }),
    remove('deletes with a body of another version', `${MAPS}/options`, {
      apiVersion: 'meta.k8s.io/v1',
      kind: 'DeleteOptions',
      dryRun: ['All'],
    }),
    remove('deletes with an old body', `${MAPS}/options`, { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] }),
    refused(422).remove('rehearses in a bad way', `${MAPS}/options`, { dryRun: ['Some'] }),
    refused(422).remove('deletes with a bad policy', `${MAPS}/options`, { propagationPolicy: 'Odd' }),
    refused(422).remove('deletes with a bad policy in the query', `${MAPS}/options?propagationPolicy=Odd`),
    refused(422).remove('deletes with both policies', `${MAPS}/options`, {
      propagationPolicy: 'Orphan',
      orphanDependents: true,
    }),
    remove('deletes with a negative grace', `${MAPS}/options?gracePeriodSeconds=-1&dryRun=All`),
    refused(400).remove('deletes with a grace that is no number', `${MAPS}/options?gracePeriodSeconds=x`),
    remove('deletes with bad JSON', `${MAPS}/options`, '{'),
    remove('deletes with an unknown field', `${MAPS}/options`, { unknown: 1, dryRun: ['All'] }),
    refused(415).remove('deletes with a bad media type', `${MAPS}/options`, '{}', {
      headers: { 'content-type': 'application/xml' },
    }),
    remove('deletes with its uid', `${MAPS}/options`, {
      preconditions: { uid: '{{options.metadata.uid}}', resourceVersion: '{{options.metadata.resourceVersion}}' },
    }),
    make('kept', { finalizers: ['example.org/keep'] }),
    remove('deletes what has a finalizer', `${MAPS}/kept`),
    remove('deletes it again', `${MAPS}/kept`),
    get('gets what is being deleted', `${MAPS}/kept`),
    refused(422).mergePatch('adds a finalizer while it is being deleted', `${MAPS}/kept`, {
      metadata: { finalizers: ['example.org/keep', 'example.org/more'] },
    }),
    mergePatch('changes it while it is being deleted', `${MAPS}/kept`, { data: { a: 'b' } }),
    put('takes its deletion back', `${MAPS}/kept`, {
      metadata: { name: 'kept', finalizers: ['example.org/keep'], deletionTimestamp: null },
    }),
    mergePatch('lets it go', `${MAPS}/kept`, { metadata: { finalizers: null } }),
    refused(404).get('gets what was let go', `${MAPS}/kept`),
    // What a collector of garbage does with these two is not compared.
    make('orphaned', { finalizers: ['example.org/keep'] }),
    remove('orphans', `${MAPS}/orphaned?propagationPolicy=Orphan`, undefined, {
      view: ({ metadata: { finalizers } }) => finalizers.toSorted(),
    }),
    make('foreground', { finalizers: ['example.org/keep'] }),
    remove('deletes in the foreground', `${MAPS}/foreground?propagationPolicy=Foreground`, undefined, {
      view: ({ metadata: { finalizers } }) => finalizers.toSorted(),
    }),
    silently(mergePatch('lets orphaned go', `${MAPS}/orphaned`, { metadata: { finalizers: null } })),
    silently(mergePatch('lets foreground go', `${MAPS}/foreground`, { metadata: { finalizers: null } })),
    pod('graceful'),
    remove('deletes a pod', `${PODS}/graceful`),
    remove('deletes a pod again', `${PODS}/graceful`),
    remove('deletes a pod sooner', `${PODS}/graceful?gracePeriodSeconds=5`),
    remove('deletes a pod later', `${PODS}/graceful?gracePeriodSeconds=50`),
    refused(409).remove('deletes a pod of another uid now', `${PODS}/graceful`, {
      gracePeriodSeconds: 0,
      preconditions: { uid: '11111111-2222-3333-4444-555555555555' },
    }),
    remove('deletes a pod now', `${PODS}/graceful`, {
      gracePeriodSeconds: 0,
      preconditions: { uid: '{{graceful.metadata.uid}}' },
    }),
    refused(404).get('gets a pod that was deleted', `${PODS}/graceful`),
    pod('rehearsed'),
    remove('rehearses to delete a pod', `${PODS}/rehearsed?dryRun=All`),
    get('gets a pod that was to be deleted', `${PODS}/rehearsed`, {
      view: ({ metadata: { deletionTimestamp } }) => deletionTimestamp,
    }),
    remove(
      'deletes a pod with a finalizer in the foreground',
      `${PODS}/rehearsed`,
      { gracePeriodSeconds: 3, propagationPolicy: 'Background' },
      { view: ({ metadata: { finalizers, deletionGracePeriodSeconds } }) => [finalizers, deletionGracePeriodSeconds] },
    ),
    remove('deletes all pods', PODS, undefined, { view: ({ kind, items }) => [kind, items?.length] }),
    remove('deletes all pods now', `${PODS}?gracePeriodSeconds=0`, undefined, {
      view: ({ kind, items }) => [kind, items?.length],
    }),
  ]),
};
