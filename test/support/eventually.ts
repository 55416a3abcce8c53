/** Waits until `check` stops throwing and answers what it answers; fails with its last complaint. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 20_000): Promise<T> {
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
