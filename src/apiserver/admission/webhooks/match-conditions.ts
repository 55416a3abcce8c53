import type { AdmissionAttributes } from '../../registry/contract.ts';
import type { Invocation } from './source.ts';

export type Verdict = { readonly matches: boolean } | { readonly error: string };

export function evaluateMatchConditions(_invocation: Invocation, _attributes: AdmissionAttributes): Verdict {
  return { matches: true };
}
