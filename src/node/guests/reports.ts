import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { ApiError } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { findCondition, isConditionTrue } from '../../kube/conditions.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { isSettled } from '../../migration/right-to-run/decide.ts';
import { migrationEvents } from '../migrations/migration-events.ts';
import type { Migrations } from '../migrations/migrations.ts';
import type { GuestNotes } from './guest-notes.ts';
import { causeOf, guestStatus, hasSucceeded } from './guest-status.ts';
import { isPodOver, type LauncherPod, launcherPods, type LauncherPodStatus } from './launcher-pod.ts';
import { endedStatus, foreignStatus, NOT_A_LAUNCHER, runningStatus, waitingStatus } from './pod-status.ts';
import type { Obstacle, Prepared } from './preparation.ts';
import type { Outcome } from './scene.ts';
import type { Steps } from './steps.ts';

export interface ReportsOptions {
  readonly clock: Clock;
  readonly client: Client;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly notes: GuestNotes;
  readonly steps: Steps;
  readonly migrations: Pick<Migrations, 'status'>;
  /** Does something that writes a pod, by its UID. */
  readonly writePod: (podUID: string, write: () => Promise<LauncherPod>) => Promise<void>;
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
    const nowMs = this.#options.clock.now();
    const end = this.#options.notes.endOf(podUID, seen);
    const cause = prepared?.kind === 'impossible' ? prepared.cause : causeOf(end);
    if (isSettled(view) && pod.metadata.deletionTimestamp !== undefined) return this.#delete(pod, signal);
    if (isPodOver(pod)) return;
    if (isSettled(view) && view.standing.kind !== 'none') {
      const { givenTo } = view.standing.kind === 'ended' ? view.standing : {};
      const moved = givenTo && { reason: 'Completed', message: `the guest has moved to node ${givenTo.node}` };
      return this.#tell(
        pod,
        endedStatus(pod, givenTo !== undefined || hasSucceeded(end), moved ?? cause, nowMs),
        signal,
      );
    }
    if (!guest) return;
    const isPending = pod.status?.phase !== 'Running';
    const running = runningStatus(pod, isConditionTrue(guest.status?.conditions, 'Paused'), nowMs);
    // Whoever takes the node for lost says that its pods are not ready; nobody but the node says that they are again.
    const isDoubted =
      !isPending && pod.metadata.deletionTimestamp === undefined && isReady(pod.status) !== isReady(running);
    // Whoever started its machine may not have come to say so.
    const hasMachine = view.standing.kind === 'holding' || view.standing.kind === 'receiving';
    if (hasMachine && (isPending || isDoubted)) return this.#tell(pod, running, signal);
    if (!prepared) return;
    if (prepared.kind === 'ready') {
      if (isPending)
        for (const notice of prepared.notices ?? [])
          this.#options.recorder.event(guest, 'Warning', 'OldImageUsed', notice);
      if (isPending || isDoubted) await this.#tell(pod, running, signal);
      return;
    }
    this.#complain(guest, pod, prepared.cause);
    if (prepared.kind === 'impossible') return this.#tell(pod, endedStatus(pod, false, prepared.cause, nowMs), signal);
    if (isPending) await this.#tell(pod, waitingStatus(pod, prepared.cause, nowMs), signal);
  }

  /** Says of a pod that is none of this agent's why it never runs, and lets it go when it is deleted. */
  async tellForeign(pod: LauncherPod, signal: AbortSignal): Promise<void> {
    if (pod.metadata.deletionTimestamp !== undefined) return this.#delete(pod, signal);
    if (isPodOver(pod) || pod.status?.reason === NOT_A_LAUNCHER.reason) return;
    const { reason, message } = NOT_A_LAUNCHER;
    this.#options.recorder.event(pod, 'Warning', reason, message);
    await this.#tell(pod, foreignStatus(pod, this.#options.clock.now()), signal);
  }

  /** Lets go of a pod whose guest is gone, and which has no machine. */
  async tellOrphan(pod: LauncherPod, signal: AbortSignal): Promise<void> {
    if (pod.metadata.deletionTimestamp !== undefined) await this.#delete(pod, signal);
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
    const known = pod.status?.containerStatuses?.[0]?.state.waiting;
    if (known?.reason !== reason || known.message !== message)
      this.#options.recorder.event(guest, 'Warning', reason, message);
  }

  async #tell(pod: LauncherPod, status: LauncherPodStatus, signal: AbortSignal): Promise<void> {
    const body = statusPatch(pod, status);
    if (!body) return;
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const patch = { type: 'merge', body } as const;
    const { client, writePod } = this.#options;
    await writePod(uid, () => client.patch(launcherPods, namespace, name, patch, signal, { subresource: 'status' }));
  }

  async #delete({ metadata }: LauncherPod, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = metadata;
    const options = { gracePeriodSeconds: 0, preconditions: { uid } };
    try {
      await this.#options.client.delete(launcherPods, namespace, name, signal, options);
    } catch (error) {
      // It is gone, or another one has its name: either way there is nothing left to let go of.
      if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 409)) throw error;
    }
  }
}

function isReady(status: LauncherPodStatus | undefined): boolean {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}
