import { createHash } from 'node:crypto';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';

/** Enough that no two templates of one machine are taken for each other. */
const HASH_LENGTH = 16;

/** What a guest is made from, in short; the order of fields means nothing. */
export function templateHash({ spec }: VirtualMachine): string {
  const { template, instancetype, preference } = spec;
  const size = [instancetype?.kind, instancetype?.name, preference?.kind, preference?.name];
  const text = JSON.stringify([template.spec, size], inOrder);
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH);
}

function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
