const LOOK_MS = 1;
const WAIT_MS_MAX = 180_000;

/** Looks until there is something, and answers it. */
export async function until<T>(
  look: () => T | undefined | Promise<T | undefined>,
  failure: string,
  waitMsMax = WAIT_MS_MAX,
): Promise<T> {
  const deadlineMs = performance.now() + waitMsMax;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadlineMs) throw new Error(failure);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
