import type { Taint, Toleration } from './objects.ts';

/** Whether the toleration covers the taint. An empty key or effect of the toleration covers all of them. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  return (operator === '' || operator === 'Equal') && value === (taint.value ?? '');
}

/** Whether the taint keeps pods that do not tolerate it from being placed on its node. */
export function forbidsScheduling(taint: Taint): boolean {
  return taint.effect === 'NoSchedule' || taint.effect === 'NoExecute';
}

/** The first taint that forbids scheduling and that nothing tolerates. */
export function untoleratedTaint(taints: readonly Taint[], tolerations: readonly Toleration[]): Taint | undefined {
  return taints.find((taint) => forbidsScheduling(taint) && !tolerations.some((each) => tolerates(each, taint)));
}
