import { IS_KUBERNETES } from './kubernetes/wanted.ts';
import { say } from './say.ts';

/** Says what is left out where this machine does not allow it. On real Kubernetes nothing is: the test fails with the reason. */
export function leftOut(reason: string): void {
  if (IS_KUBERNETES)
    throw new Error(`nothing is left out on real Kubernetes, and this cannot be shown here: ${reason}`);
  say(`left out: ${reason}`);
}
