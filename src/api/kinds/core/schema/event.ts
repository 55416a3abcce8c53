import { int32, message, microTime, str } from '../../../schema.ts';
import { CORE } from './package.ts';

/** Schemas of the parts of an event. */

export const eventSource = message(`${CORE}.EventSource`, 'Who reported an event.', {
  component: [1, str(), 'The component.'],
  host: [2, str(), 'The node it runs on.'],
});

export const eventSeries = message(`${CORE}.EventSeries`, 'A row of like events.', {
  count: [1, int32(), 'How many there were.'],
  lastObservedTime: [2, microTime(), 'When the last one was seen.'],
});
