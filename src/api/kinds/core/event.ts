import { type FieldError, invalid, required } from '../../field-error.ts';
import { ageOf } from '../../human-duration.ts';
import type { KubeObject } from '../../meta.ts';
import { byteLength, dnsSubdomainErrors, qualifiedNameErrors } from '../../names.ts';
import type { Column } from '../../resource.ts';
import { int32, microTime, str, time } from '../../schema.ts';
import { column, nameColumn, wideColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { numberAt, objectAt, textAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { eventSeries, eventSource } from './schema/event.ts';
import { CORE } from './schema/package.ts';
import { objectReference } from './schema/references.ts';

const TEXT_BYTES_MAX = 128;
const MESSAGE_BYTES_MAX = 1024;

/**
 * What is wrong with an event. Those without an eventTime are of the old kind, of which little is asked.
 * `reporter` is how the version that was written calls the controller's field.
 */
export function eventErrors(event: KubeObject, reporter: string): FieldError[] {
  const namespace = event.metadata.namespace ?? '';
  const isNew = textAt(event, 'eventTime') !== '';
  const errors = isNew ? newEventErrors(event, namespace, reporter) : oldEventErrors(event, namespace);
  for (const message of dnsSubdomainErrors(namespace)) errors.push(invalid('namespace', namespace, message));
  return errors;
}

const NAMESPACE_PATH = 'involvedObject.namespace';
const NAMESPACE_DETAIL = 'does not match event.namespace';

function oldEventErrors(event: KubeObject, namespace: string): FieldError[] {
  const involved = textAt(objectAt(event, 'involvedObject'), 'namespace');
  // Events about cluster-scoped objects live in the default namespace.
  const isRight = involved === '' ? namespace === '' || namespace === 'default' : namespace === involved;
  return isRight ? [] : [invalid(NAMESPACE_PATH, involved, NAMESPACE_DETAIL)];
}

function newEventErrors(event: KubeObject, namespace: string, reporter: string): FieldError[] {
  const errors: FieldError[] = [];
  const involved = textAt(objectAt(event, 'involvedObject'), 'namespace');
  if (involved === '' && namespace !== 'default' && namespace !== 'kube-system') {
    errors.push(invalid(NAMESPACE_PATH, involved, NAMESPACE_DETAIL));
  }
  const controller = textAt(event, 'reportingComponent');
  if (controller === '') errors.push(required(reporter));
  for (const message of qualifiedNameErrors(controller)) errors.push(invalid(reporter, controller, message));
  for (const field of ['reportingInstance', 'action', 'reason']) {
    if (textAt(event, field) === '') errors.push(required(field));
    errors.push(...lengthErrors(event, field, TEXT_BYTES_MAX));
  }
  errors.push(...lengthErrors(event, 'message', MESSAGE_BYTES_MAX));
  return errors;
}

function lengthErrors(event: KubeObject, field: string, bytesMax: number): FieldError[] {
  if (byteLength(textAt(event, field)) <= bytesMax) return [];
  return [invalid(field, '', `can have at most ${bytesMax} characters`)];
}

function firstSeen(event: KubeObject, nowMs: number): string {
  return ageOf(textAt(event, 'firstTimestamp') || textAt(event, 'eventTime'), nowMs);
}

function lastSeen(event: KubeObject, nowMs: number): string {
  const series = objectAt(event, 'series');
  if (series !== undefined) return ageOf(series['lastObservedTime'], nowMs);
  const last = textAt(event, 'lastTimestamp');
  return last === '' ? firstSeen(event, nowMs) : ageOf(last, nowMs);
}

function target(event: KubeObject): string {
  const involved = objectAt(event, 'involvedObject');
  const kind = textAt(involved, 'kind').toLowerCase();
  const name = textAt(involved, 'name');
  return name === '' ? kind : `${kind}/${name}`;
}

function sourceText(event: KubeObject): string {
  const source = objectAt(event, 'source');
  const component = textAt(source, 'component') || textAt(event, 'reportingComponent');
  const instance = textAt(source, 'host') || textAt(event, 'reportingInstance');
  return instance === '' ? component : `${component}, ${instance}`;
}

function count(event: KubeObject): number {
  const series = objectAt(event, 'series');
  return series === undefined ? numberAt(event, 'count') || 1 : (numberAt(series, 'count') ?? 0);
}

/** The columns of events, whichever group serves them. */
export const eventColumns: readonly Column[] = [
  column('Last Seen', 'string', 'When it was last seen.', (_spec, _status, event, nowMs) => lastSeen(event, nowMs)),
  column('Type', 'string', 'Normal or Warning.', (_spec, _status, event) => textAt(event, 'type')),
  column('Reason', 'string', 'One word for what happened.', (_spec, _status, event) => textAt(event, 'reason')),
  column('Object', 'string', 'The object that it happened to.', (_spec, _status, event) => target(event)),
  wideColumn('Subobject', 'string', 'The part of the object.', (_spec, _status, event) =>
    textAt(objectAt(event, 'involvedObject'), 'fieldPath'),
  ),
  wideColumn('Source', 'string', 'Who reported it.', (_spec, _status, event) => sourceText(event)),
  column('Message', 'string', 'What happened, in words.', (_spec, _status, event) => textAt(event, 'message').trim()),
  wideColumn('First Seen', 'string', 'When it was first seen.', (_spec, _status, event, nowMs) =>
    firstSeen(event, nowMs),
  ),
  wideColumn('Count', 'string', 'How often it was seen.', (_spec, _status, event) => count(event)),
  { ...nameColumn, priority: 1 },
];

/** core/v1 Event. */
export const eventDefinition = coreKind({
  plural: 'events',
  kind: 'Event',
  namespaced: true,
  createsOnUpdate: true,
  shortNames: ['ev'],
  schema: objectSchema(
    `${CORE}.Event`,
    'Something that happened to an object.',
    {
      involvedObject: [2, { ...objectReference, default: {} }, 'The object.'],
      reason: [3, str(), 'One word for what happened.'],
      message: [4, str(), 'What happened, in words.'],
      source: [5, eventSource, 'Who reported it.'],
      firstTimestamp: [6, time(), 'When it was first seen.'],
      lastTimestamp: [7, time(), 'When it was last seen.'],
      count: [8, int32(), 'How often it was seen.'],
      type: [9, str(), 'Normal or Warning.'],
      eventTime: [10, microTime(), 'When it was seen.'],
      series: [11, eventSeries, 'The row of like events that this one stands for.'],
      action: [12, str(), 'What was done about it.'],
      related: [13, objectReference, 'Another object that it has to do with.'],
      reportingComponent: [14, str({ default: '' }), 'The controller that reported it.'],
      reportingInstance: [15, str({ default: '' }), 'The instance of the controller.'],
    },
    { required: ['metadata', 'involvedObject'] },
  ),
  selectableFields: [
    'involvedObject.kind',
    'involvedObject.namespace',
    'involvedObject.name',
    'involvedObject.uid',
    'involvedObject.apiVersion',
    'involvedObject.resourceVersion',
    'involvedObject.fieldPath',
    'reason',
    'reportingComponent',
    'source',
    'type',
  ],
  selectableAliases: { source: ['source.component', 'reportingComponent'] },
  columns: eventColumns,
  strategy: { validate: (event) => eventErrors(event, 'reportingComponent') },
});
