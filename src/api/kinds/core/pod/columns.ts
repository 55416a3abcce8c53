import type { JsonObject } from '../../../meta.ts';
import type { Column } from '../../../resource.ts';
import { ageColumn, column, nameColumn, NONE, wideColumn } from '../../columns.ts';
import { objectsAt, textAt } from '../fields.ts';
import { restartsText, summarize } from './summary.ts';

function gatesText(spec: JsonObject | undefined, status: JsonObject | undefined): string {
  const gates = objectsAt(spec, 'readinessGates');
  if (gates.length === 0) return NONE;
  const conditions = objectsAt(status, 'conditions');
  const open = gates.filter((gate) => {
    const type = textAt(gate, 'conditionType');
    return (
      textAt(
        conditions.find((condition) => textAt(condition, 'type') === type),
        'status',
      ) === 'True'
    );
  });
  return `${open.length}/${gates.length}`;
}

/** The columns of `kubectl get pods`. */
export const podColumns: readonly Column[] = [
  nameColumn,
  column('Ready', 'string', 'How many of the containers are ready.', (_spec, _status, pod) => {
    const { readyCount, containerCount } = summarize(pod);
    return `${readyCount}/${containerCount}`;
  }),
  column(
    'Status',
    'string',
    'What the containers are doing, in one word.',
    (_spec, _status, pod) => summarize(pod).status,
  ),
  column('Restarts', 'string', 'How often containers were restarted, and when last.', (_spec, _status, pod, nowMs) =>
    restartsText(summarize(pod), nowMs),
  ),
  ageColumn,
  wideColumn(
    'IP',
    'string',
    'Address of the pod.',
    (_spec, status) => textAt(objectsAt(status, 'podIPs')[0], 'ip') || NONE,
  ),
  wideColumn('Node', 'string', 'The node that the pod runs on.', (spec) => textAt(spec, 'nodeName') || NONE),
  wideColumn(
    'Nominated Node',
    'string',
    'The node where others make way for this pod.',
    (_spec, status) => textAt(status, 'nominatedNodeName') || NONE,
  ),
  wideColumn('Readiness Gates', 'string', 'How many of the readiness gates are open.', gatesText),
];
