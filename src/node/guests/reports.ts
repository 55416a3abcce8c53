import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Clock } from '../../env/ports.ts';
import { findCondition, isConditionTrue } from '../../kube/conditions.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { isSettled } from '../../migration/right-to-run/decide.ts';
import { migrationEvents } from '../migrations/migration-events.ts';
import type { Migrations } from '../migrations/migrations.ts';
import type { GuestNotes } from './guest-notes.ts';
import { causeOf, guestStatus, hasSucceeded } from './guest-status.ts';
import { isPodOver, type LauncherPod } from './launcher-pod.ts';
import type { PodKeeper } from './pod-keeper.ts';
import type { Obstacle, Prepared } from './preparation.ts';
import type { Outcome } from './scene.ts';
import type { Steps } from './steps.ts';

export interface ReportsOptions {
  readonly clock: Clock;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly notes: GuestNotes;
  readonly steps: Steps;
  readonly migrations: Pick<Migrations, 'status'>;
  readonly pods: PodKeeper;
}

/** Tells the API server how guests and their pods are. */
export class Reports {
  readonly #options: ReportsOptions;

  constructor(options: ReportsOptions) {
    this.#options = options;
  }

  /** Says how a guest is, of what is new; with fields that somebody else knows. */
  async tellGuest(outcome: Outcome, more: VirtualMachineInstanceStatus, signal: AbortSignal): Promise<void> {
    const { podUID, guest, view, seen } = outcome;
    if (!guest) return;
    const { clock, notes, steps, migrations } = this.#options;
    const { self, standing } = view;
    const { status, agent } = seen;
    const facts = { guest, self, standing, status, agent, end: notes.endOf(podUID, seen) };
    const migrationState = migrations.status(outcome, self, standing, seen);
    const fields = { ...guestStatus(facts, clock.now()), ...(migrationState ? { migrationState } : {}), ...more };
    await steps.patch(podUID, guest, fields, signal);
  }

  /** Says how a launcher pod is, and lets it go when nothing of it runs any more, nor will. */
  async tellPod(outcome: Outcome, prepared: Prepared | undefined, signal: AbortSignal): Promise<void> {
    const { pod, guest, view, podUID, seen } = outcome;
    if (!pod) return;
    const { notes, pods, recorder } = this.#options;
    const end = notes.endOf(podUID, seen);
    const cause = prepared?.kind === 'impossible' ? prepared.cause : causeOf(end);
    if (isSettled(view) && pod.metadata.deletionTimestamp !== undefined) return pods.letGo(pod, signal);
    if (isPodOver(pod)) return;
    if (isSettled(view) && view.standing.kind !== 'none') {
      const { givenTo } = view.standing.kind === 'ended' ? view.standing : {};
      const moved = givenTo && { reason: 'Completed', message: `the guest has moved to node ${givenTo.node}` };
      const hasEndedWell = givenTo !== undefined || hasSucceeded(end);
      return pods.tellEnded(pod, { hasSucceeded: hasEndedWell, cause: moved ?? cause }, signal);
    }
    if (!guest) return;
    const isPaused = isConditionTrue(guest.status?.conditions, 'Paused');
    // Whoever started its machine may not have come to say so.
    const hasMachine = view.standing.kind === 'holding' || view.standing.kind === 'receiving';
    if (hasMachine) return pods.tellRunning(pod, isPaused, signal);
    if (!prepared) return;
    if (prepared.kind === 'ready') {
      if (pods.isPending(pod))
        for (const notice of prepared.notices ?? []) recorder.event(guest, 'Warning', 'OldImageUsed', notice);
      return pods.tellRunning(pod, isPaused, signal);
    }
    this.#complain(guest, pod, prepared.cause);
    if (prepared.kind === 'impossible')
      return pods.tellEnded(pod, { hasSucceeded: false, cause: prepared.cause }, signal);
    await pods.tellWaiting(pod, prepared.cause, signal);
  }

  /** Lets go of a pod whose guest is gone, and which has no machine. */
  async tellOrphan(pod: LauncherPod, signal: AbortSignal): Promise<void> {
    if (pod.metadata.deletionTimestamp !== undefined) await this.#options.pods.letGo(pod, signal);
  }

  /** Tells people what a write has just told programs. */
  tellPeople(podUID: string, before: VirtualMachineInstance, after: VirtualMachineInstance): void {
    const { recorder, notes } = this.#options;
    const moves = migrationEvents(before.status?.migrationState, after.status?.migrationState);
    for (const { type, reason, message } of moves) recorder.event(after, type, reason, message);
    const phase = after.status?.phase;
    if (phase === before.status?.phase) return;
    const { end } = notes.get(podUID) ?? {};
    if (phase === 'Running') recorder.event(after, 'Normal', 'Started', 'VirtualMachineInstance started.');
    if (phase === 'Succeeded') recorder.event(after, 'Normal', 'Stopped', 'The VirtualMachineInstance was shut down.');
    if (phase === 'Failed') {
      // Who was told to go has no reason of its own.
      const failure = findCondition(after.status?.conditions, 'Synchronized');
      const { message } = failure ?? causeOf(end);
      recorder.event(after, failure ? 'Warning' : 'Normal', 'Stopped', `The VirtualMachineInstance ended: ${message}`);
    }
  }

  /** Once is enough: the pod remembers it. */
  #complain(guest: VirtualMachineInstance, pod: LauncherPod, { reason, message }: Obstacle): void {
    const known = this.#options.pods.obstacleOf(pod);
    if (known?.reason !== reason || known.message !== message)
      this.#options.recorder.event(guest, 'Warning', reason, message);
  }
}
