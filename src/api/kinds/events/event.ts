import type { KubeObject } from '../../meta.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { int32, message, microTime, str, time } from '../../schema.ts';
import { eventColumns, eventErrors } from '../core/event.ts';
import { eventSource } from '../core/schema/event.ts';
import { objectReference } from '../core/schema/references.ts';
import { builtin, objectSchema } from '../meta.ts';

/** events.k8s.io/v1 Event: another face of core/v1 events, under which they are stored. */

const EVENTS = 'io.k8s.api.events.v1';

const eventSeries = message(
  `${EVENTS}.EventSeries`,
  'Says that an event went on happening.',
  {
    count: [1, int32(), 'How often it has happened so far.'],
    lastObservedTime: [2, microTime(), 'When it last happened.'],
  },
  { required: ['count', 'lastObservedTime'] },
);

const event = objectSchema(
  `${EVENTS}.Event`,
  'A report of something that happened to an object.',
  {
    eventTime: [2, microTime(), 'When it first happened.'],
    series: [3, eventSeries, 'Set when it has happened more than once.'],
    reportingController: [4, str(), 'Who reports it.'],
    reportingInstance: [5, str(), 'Which instance of the reporter.'],
    action: [6, str(), 'What was done or failed.'],
    reason: [7, str(), 'Why it was done, in one word.'],
    regarding: [8, objectReference, 'The object that it is about.'],
    related: [9, objectReference, 'A second object, for actions that involve two.'],
    note: [10, str(), 'What happened, in words.'],
    type: [11, str(), 'Normal or Warning.'],
    deprecatedSource: [12, eventSource, 'The reporter, as core events have it.'],
    deprecatedFirstTimestamp: [13, time(), 'The first time, as core events have it.'],
    deprecatedLastTimestamp: [14, time(), 'The last time, as core events have it.'],
    deprecatedCount: [15, int32(), 'The count, as core events have it.'],
  },
  { required: ['eventTime'] },
);

/** The name of each field here, and its name in core/v1 where that is another. */
const CORE_NAMES: readonly (readonly [own: string, core: string])[] = [
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
  ['reportingController', 'reportingComponent'],
];

function rename(object: KubeObject, from: string, to: string): void {
  if (object[from] !== undefined) object[to] = object[from];
  delete object[from];
}

function toStorage(object: KubeObject): void {
  for (const [own, core] of CORE_NAMES) rename(object, own, core);
}

function fromStorage(object: KubeObject): void {
  for (const [own, core] of CORE_NAMES) rename(object, core, own);
}

/** The same event as core/v1 has it; shares its values with the original. */
function coreFace(object: KubeObject): KubeObject {
  const face = { ...object };
  toStorage(face);
  return face;
}

/** events.k8s.io/v1 Event. */
export const eventsEventDefinition: ResourceDefinition = builtin({
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  namespaced: true,
  createsOnUpdate: true,
  shortNames: ['ev'],
  schema: event,
  columns: eventColumns.map((column) => ({
    ...column,
    cell: (object, nowMs) => column.cell?.(coreFace(object), nowMs) ?? null,
  })),
  selectableFields: [
    'regarding.kind',
    'regarding.namespace',
    'regarding.name',
    'regarding.uid',
    'regarding.apiVersion',
    'regarding.resourceVersion',
    'regarding.fieldPath',
    'reason',
    'reportingController',
    'type',
  ],
  storage: { group: '', plural: 'events', toStorage, fromStorage },
  strategy: { validate: (object) => eventErrors(coreFace(object), 'reportingController') },
});
