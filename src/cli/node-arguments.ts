import { InvalidArgumentError } from 'commander';
import { dnsSubdomainErrors } from '../api/names.ts';
import type { Taint } from '../migration/fit/objects.ts';

/** What an agent is told of its node on the command line. */

/** Labels have a node's name as their value. */
const NAME_LENGTH_MAX = 63;

/** The name of a node, in small letters as kubelet has it: machines are often called otherwise. */
export function parseNodeName(text: string): string {
  const name = text.trim().toLowerCase();
  if (name.length > NAME_LENGTH_MAX || dnsSubdomainErrors(name).length > 0)
    throw new InvalidArgumentError(
      `give letters, digits, '-' and '.', at most ${NAME_LENGTH_MAX} of them, such as node-1: the Node is called so.`,
    );
  return name;
}

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
