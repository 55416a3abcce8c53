/** Calls back with what a promise was rejected with and nobody heard of; answers what ends that. */
export function onUnhandled(listener: (error: unknown) => void): () => void {
  process.on('unhandledRejection', listener);
  return () => void process.off('unhandledRejection', listener);
}
