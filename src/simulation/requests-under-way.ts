/** Which pods are being deleted and evicted by requests that the server has not answered yet. */
export class RequestsUnderWay {
  readonly #counts = new Map<string, number>();

  /** Notes a request; answers what to call when it has been answered. */
  begin(method: string, path: string): () => void {
    const match = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)(\/eviction)?$/.exec(path);
    const isEviction = match?.[3] !== undefined && method === 'POST';
    if (!match || !(isEviction || (method === 'DELETE' && match[3] === undefined))) return () => undefined;
    const id = `${isEviction ? 'evict' : 'delete'} ${match[1]}/${match[2]}`;
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
    return () => {
      const count = (this.#counts.get(id) ?? 1) - 1;
      if (count > 0) this.#counts.set(id, count);
      else this.#counts.delete(id);
    };
  }

  /** Whether a pod can only have been taken by an eviction. */
  isEvicted(key: string): boolean {
    return this.#counts.has(`evict ${key}`) && !this.#counts.has(`delete ${key}`);
  }

  /** The server is gone, and all requests with it. */
  clear(): void {
    this.#counts.clear();
  }
}
