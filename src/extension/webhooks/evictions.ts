import { errorMessage } from '../../api/error-message.ts';
import { causesOf, sourceAnnotation, withCause } from '../../api/kubevirt/evacuation.ts';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatTime, type KubeObject, type OwnerReference } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { unreachable } from '../../api/unreachable.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { Resource } from '../../kube/resource.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { selectorFrom } from '../../machinery/selectors.ts';
import { budgetName, isRefusing } from '../../migration/eviction/disruption-budget.ts';
import type { WebhookContext } from './context.ts';
import { disruptionBudgets } from './disruption-budgets.ts';
import { answerTo, type EvictedPod, isFinished, quoted } from './eviction-answer.ts';
import { type AdmissionRequest, ALLOWED, type Verdict, type Webhook } from './review.ts';

/**
 * Evictions of launcher pods become moves: the first request marks the guest, and is denied; the pod goes when its guest
 * has gone. Whoever cannot say what a pod is lets it go: the registration says the same of a webhook that is not there,
 * and what must be kept has a disruption budget.
 */

const pods: Resource<EvictedPod> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };

/** How often a guest is looked at again that others write to at the same time. */
const ATTEMPTS_MAX = 10;
const DESCHEDULER = 'sigs.k8s.io/descheduler';

interface Eviction extends KubeObject {
  readonly deleteOptions?: { readonly dryRun?: readonly string[] };
}

/** One request for the eviction of a pod, with all that it takes to answer. */
interface Question {
  readonly context: WebhookContext;
  readonly request: AdmissionRequest;
  readonly pod: EvictedPod;
  readonly owner: OwnerReference;
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/** Answers for launcher pods. */
export function interceptEviction(context: WebhookContext): Webhook {
  return async (request, signal) => {
    const pod = await podOf(context, request, signal);
    const owner = pod && guestOwnerOf(pod);
    if (!pod || !owner || isFinished(pod)) return ALLOWED;
    const question: Question = { context, request, pod, owner, dryRun: isDryRun(request), signal };
    for (let attempt = 1; ; attempt++) {
      try {
        return await answer(question);
      } catch (error) {
        const isStale = error instanceof ApiError && error.code === 409;
        if (!isStale || attempt === ATTEMPTS_MAX)
          return denied(`kubevirt failed marking the vmi for eviction: ${errorMessage(error)}`);
      }
    }
  };
}

/** Answers for pods that hold plugged-in volumes: they are kept for as long as their launcher has a guest. */
export function keepHotplugPod(context: WebhookContext): Webhook {
  return async (request, signal) => {
    const pod = await podOf(context, request, signal);
    const owner = pod && controllerOf(pod);
    if (!pod || owner?.kind !== 'Pod' || isFinished(pod)) return ALLOWED;
    const { namespace = '', name } = pod.metadata;
    let launcher: EvictedPod | undefined;
    try {
      launcher = await context.client.find(pods, namespace, owner.name, signal);
    } catch (error) {
      return denied(`failed getting owner for hotplug pod: ${errorMessage(error)}`);
    }
    const guestOwner = launcher && guestOwnerOf(launcher);
    if (!launcher || !guestOwner || launcher.metadata.uid !== owner.uid || isFinished(launcher)) return ALLOWED;
    const guest = await guestOf(context, namespace, guestOwner, signal);
    if (guest === undefined) return ALLOWED;
    if (guest instanceof Error) return denied(`kubevirt failed getting the vmi: ${guest.message}`);
    return denied(
      `cannot evict hotplug pod: ${name} associated with running vmi: ${guest.metadata.name} in namespace ${namespace}`,
    );
  };
}

async function answer(question: Question): Promise<Verdict> {
  const { context, pod, owner, dryRun, signal } = question;
  const guest = await guestOf(context, pod.metadata.namespace ?? '', owner, signal);
  // Whoever had the name before is over, and its pod with it.
  if (guest === undefined) return ALLOWED;
  if (guest instanceof Error) return denied(`kubevirt failed getting the vmi: ${guest.message}`);
  const given = answerTo(pod, guest, context.configuration());
  switch (given.kind) {
    case 'allow':
      return ALLOWED;
    case 'deny':
      if (given.isBlocked && !dryRun) tellOfObstacle(context, guest);
      return denied(given.message);
    case 'mark':
      await mark(question, guest);
      return denied(`Eviction triggered evacuation of VMI ${quoted(guest)}`);
    case 'leave-to-budget':
      await mark(question, guest);
      if (await isKeptByBudget(question, guest)) return ALLOWED;
      return denied(`Evacuation in progress: Eviction triggered evacuation of VMI ${quoted(guest)}`);
    default:
      return unreachable(given);
  }
}

/** Writes down that the guest has to leave, and why. Rejects with 409 where it is not any more what it was. */
async function mark({ context, request, dryRun, signal }: Question, guest: VirtualMachineInstance): Promise<void> {
  // Nothing that could be read before is needed for the answer.
  if (dryRun) return;
  const { client, clock, cordons } = context;
  const { nodeName = '' } = guest.status ?? {};
  const kind = isFromDescheduler(request) ? 'Descheduler' : 'APIEviction';
  const known = causesOf(guest).find((each) => each.cause === kind);
  // Whoever asks again for what is known changes nothing, unless it was a drain's, and now is not.
  if (known && known.untilUncordon !== true) return;
  const isDrain = kind === 'APIEviction' && (await cordons.isCordoned(nodeName, signal));
  if (known && isDrain) return;
  const cause: EvacuationCause = {
    cause: kind,
    since: formatTime(clock.now()),
    message: `requested by ${request.userInfo.username ?? ''}`,
    ...(isDrain ? { untilUncordon: true } : {}),
  };
  const body = statusPatch(guest, withCause(guest, cause));
  if (!body) return;
  const { namespace = '', name = '' } = guest.metadata;
  const patch = { type: 'merge', body } as const;
  const options = { subresource: 'status' };
  const marked = await client.patch(virtualMachineInstances, namespace, name, patch, signal, options);
  const annotations = sourceAnnotation(marked);
  if (!annotations) return;
  const { uid = '' } = guest.metadata;
  const noted = { type: 'merge', body: { metadata: { uid, annotations } } } as const;
  await client.patch(virtualMachineInstances, namespace, name, noted, signal);
}

function isFromDescheduler({ object }: AdmissionRequest): boolean {
  return object?.metadata.annotations?.['requested-by'] === DESCHEDULER;
}

/** Whether the guest's budget says no to whoever is let pass here. */
async function isKeptByBudget({ context, pod, signal }: Question, guest: VirtualMachineInstance): Promise<boolean> {
  const { namespace = '', uid } = guest.metadata;
  if (context.rivals.hasForeignBudget(pod)) return false;
  try {
    const budget = await context.client.find(disruptionBudgets, namespace, budgetName(guest), signal);
    if (!budget || controllerOf(budget)?.uid !== uid) return false;
    // Anybody who may write budgets, or the labels of pods, can have it keep others.
    if (!selectorFrom(budget.spec?.selector).matches(pod.metadata.labels)) return false;
    const isReady = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
    return isRefusing(budget, isReady);
  } catch {
    // Who cannot be asked keeps nobody: the answer is given here.
    return false;
  }
}

function tellOfObstacle({ recorder }: WebhookContext, guest: VirtualMachineInstance): void {
  const { reason = 'Unknown', message = '' } =
    guest.status?.conditions?.find(({ type }) => type === 'LiveMigratable') ?? {};
  const why = `the eviction of the VMI was refused, since it cannot be migrated: ${reason}${message && `: ${message}`}`;
  recorder.event(guest, 'Warning', 'EvictionBlocked', why);
}

/** The pod in question; undefined where there is none, or nobody can say. */
async function podOf(
  { client }: WebhookContext,
  { namespace = '', name, object }: AdmissionRequest,
  signal: AbortSignal,
): Promise<EvictedPod | undefined> {
  const podName = name || object?.metadata.name;
  if (!podName || namespace === '') return undefined;
  try {
    return await client.get(pods, namespace, podName, signal);
  } catch {
    // It is gone, or its budget is asked instead of us.
    return undefined;
  }
}

/** The guest that a pod is of, by its owner: labels can be on any pod. */
function guestOwnerOf(pod: EvictedPod): OwnerReference | undefined {
  const owner = controllerOf(pod);
  return owner?.kind === 'VirtualMachineInstance' && owner.apiVersion.startsWith('kubevirt.io/') ? owner : undefined;
}

/** The guest, undefined where it is gone, or what is in the way of knowing. */
async function guestOf(
  { client }: WebhookContext,
  namespace: string,
  owner: OwnerReference,
  signal: AbortSignal,
): Promise<VirtualMachineInstance | Error | undefined> {
  try {
    const guest = await client.find(virtualMachineInstances, namespace, owner.name, signal);
    return guest?.metadata.uid === owner.uid ? guest : undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(errorMessage(error));
  }
}

/** The request itself may be one, or only the deletion that it asks for. */
function isDryRun({ dryRun, object }: AdmissionRequest): boolean {
  const { deleteOptions } = (object ?? {}) as Eviction;
  return dryRun === true || (deleteOptions?.dryRun ?? []).includes('All');
}

function denied(message: string): Verdict {
  return { allowed: false, status: { code: 429, reason: 'TooManyRequests', message } };
}
