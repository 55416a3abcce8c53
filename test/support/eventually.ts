import { IS_KUBERNETES } from './kubernetes/wanted.ts';

/** Kubernetes' own controllers look for new kinds every 30 s only, and some of them for all else that seldom. */
const PATIENCE_MS = IS_KUBERNETES ? 90_000 : 20_000;

/** Waits until `check` stops throwing and answers what it answers; fails with its last complaint. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = PATIENCE_MS): Promise<T> {
  const deadlineMs = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadlineMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
