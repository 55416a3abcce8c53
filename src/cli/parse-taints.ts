import { InvalidArgumentError } from 'commander';
import type { Taint } from '../migration/fit/objects.ts';

/** A qualified name, a value that may be missing, and one of the effects that there are. */
const TAINT =
  /^((?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?)(?:=([A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?)?)?:(NoSchedule|PreferNoSchedule|NoExecute)$/;

/** Taints as kubelet takes them: `key=value:effect`, separated by commas. */
export function parseTaints(text: string): readonly Taint[] {
  const taints = text.split(',').map(parseTaint);
  if (new Set(taints.map(({ key, effect }) => `${key}:${effect}`)).size < taints.length)
    throw new InvalidArgumentError('give each key once for each effect.');
  return taints;
}

function parseTaint(text: string): Taint {
  const [, key, value, effect] = TAINT.exec(text) ?? [];
  if (key === undefined || effect === undefined)
    throw new InvalidArgumentError(
      'give KEY=VALUE:EFFECT, for example godwit.dev/guests-only=true:NoSchedule; effects are NoSchedule, PreferNoSchedule and NoExecute.',
    );
  return { key, ...(value ? { value } : {}), effect };
}
