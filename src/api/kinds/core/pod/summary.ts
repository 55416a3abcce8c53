/** What `kubectl get pods` says of a pod in three words: readiness, status, restarts. */

import { ageOf } from '../../../human-duration.ts';
import type { JsonObject, KubeObject } from '../../../meta.ts';
import { isSet, numberAt, objectAt, objectsAt, textAt } from '../fields.ts';

export interface PodSummary {
  readonly readyCount: number;
  readonly containerCount: number;
  readonly status: string;
  readonly restartCount: number;
  /** When a container last ended before a restart; empty if none did. */
  readonly lastRestart: string;
}

interface Tally {
  ready: number;
  restarts: number;
  last: string;
}

/** Sums up a pod. */
export function summarize(pod: KubeObject): PodSummary {
  const spec = objectAt(pod, 'spec');
  const status = objectAt(pod, 'status');
  const sidecars = new Set(
    objectsAt(spec, 'initContainers')
      .filter((container) => textAt(container, 'restartPolicy') === 'Always')
      .map((container) => textAt(container, 'name')),
  );
  const containerCount = objectsAt(spec, 'containers').length + sidecars.size;
  let reason = textAt(status, 'reason') || textAt(status, 'phase');
  if (conditionReason(status, 'PodScheduled') === 'SchedulingGated') reason = 'SchedulingGated';

  const all: Tally = { ready: 0, restarts: 0, last: '' };
  const ofSidecars: Tally = { ready: 0, restarts: 0, last: '' };
  const initReason = initializing(spec, status, sidecars, all, ofSidecars);
  let tally = all;
  if (initReason === undefined || isTrue(status, 'Initialized')) {
    tally = ofSidecars;
    reason = running(status, initReason ?? reason, tally);
  } else {
    reason = initReason;
  }
  return {
    readyCount: tally.ready,
    containerCount,
    status: deletionStatus(pod, status, reason),
    restartCount: tally.restarts,
    lastRestart: tally.last,
  };
}

/** Walks the init containers up to the one that is not done; says why the pod is not past it. */
function initializing(
  spec: JsonObject | undefined,
  status: JsonObject | undefined,
  sidecars: ReadonlySet<string>,
  all: Tally,
  ofSidecars: Tally,
): string | undefined {
  const total = objectsAt(spec, 'initContainers').length;
  for (const [index, container] of objectsAt(status, 'initContainerStatuses').entries()) {
    const isSidecar = sidecars.has(textAt(container, 'name'));
    countRestarts(container, all);
    if (isSidecar) countRestarts(container, ofSidecars);
    const state = objectAt(container, 'state');
    const terminated = objectAt(state, 'terminated');
    if (terminated !== undefined && (numberAt(terminated, 'exitCode') ?? 0) === 0) continue;
    if (isSidecar && isSet(container, 'started')) {
      if (isSet(container, 'ready')) {
        all.ready++;
        ofSidecars.ready++;
      }
      continue;
    }
    if (terminated !== undefined) return `Init:${terminationReason(terminated)}`;
    const waiting = textAt(objectAt(state, 'waiting'), 'reason');
    if (waiting !== '' && waiting !== 'PodInitializing') return `Init:${waiting}`;
    return `Init:${index}/${total}`;
  }
  return undefined;
}

/** Walks the containers, last first; the first one with something to say has the last word. */
function running(status: JsonObject | undefined, given: string, tally: Tally): string {
  let reason = given;
  let hasRunning = false;
  for (const container of objectsAt(status, 'containerStatuses').reverse()) {
    countRestarts(container, tally);
    const state = objectAt(container, 'state');
    const waiting = textAt(objectAt(state, 'waiting'), 'reason');
    const terminated = objectAt(state, 'terminated');
    if (waiting !== '') reason = waiting;
    else if (terminated !== undefined) reason = terminationReason(terminated);
    else if (isSet(container, 'ready') && objectAt(state, 'running') !== undefined) {
      hasRunning = true;
      tally.ready++;
    }
  }
  if (reason === 'Completed' && hasRunning) return isTrue(status, 'Ready') ? 'Running' : 'NotReady';
  return reason;
}

function terminationReason(terminated: JsonObject): string {
  const reason = textAt(terminated, 'reason');
  if (reason !== '') return reason;
  const signal = numberAt(terminated, 'signal') ?? 0;
  return signal === 0 ? `ExitCode:${numberAt(terminated, 'exitCode') ?? 0}` : `Signal:${signal}`;
}

function countRestarts(container: JsonObject, tally: Tally): void {
  tally.restarts += numberAt(container, 'restartCount') ?? 0;
  const finished = textAt(objectAt(objectAt(container, 'lastState'), 'terminated'), 'finishedAt');
  // Times are RFC 3339 in UTC with whole seconds: they sort as text.
  if (finished > tally.last) tally.last = finished;
}

function deletionStatus(pod: KubeObject, status: JsonObject | undefined, reason: string): string {
  if ((pod.metadata.deletionTimestamp ?? '') === '') return reason;
  if (textAt(status, 'reason') === 'NodeLost') return 'Unknown';
  const phase = textAt(status, 'phase');
  return phase === 'Succeeded' || phase === 'Failed' ? reason : 'Terminating';
}

function conditionReason(status: JsonObject | undefined, type: string): string {
  return textAt(
    objectsAt(status, 'conditions').find((condition) => textAt(condition, 'type') === type),
    'reason',
  );
}

function isTrue(status: JsonObject | undefined, type: string): boolean {
  return objectsAt(status, 'conditions').some(
    (condition) => textAt(condition, 'type') === type && textAt(condition, 'status') === 'True',
  );
}

/** `3 (5m ago)`, or just the number. */
export function restartsText(summary: PodSummary, nowMs: number): string {
  const { restartCount, lastRestart } = summary;
  if (restartCount === 0 || lastRestart === '') return String(restartCount);
  return `${restartCount} (${ageOf(lastRestart, nowMs)} ago)`;
}
