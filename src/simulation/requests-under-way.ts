/** Who is deleting and evicting what, by requests that the server has not answered yet. */
export class RequestsUnderWay {
  readonly #deletions = new Map<string, string[]>();
  readonly #evictions = new Map<string, string[]>();
  /** All pods that anybody ever asked to be evicted. */
  readonly #evicted = new Set<string>();

  /** Notes a request; answers what to call when it has been answered. */
  begin(method: string, path: string, user: string): () => void {
    const target = method === 'DELETE' || method === 'POST' ? targetOf(path) : undefined;
    if (!target) return () => undefined;
    if (method === 'DELETE' && target.subresource === '') return note(this.#deletions, target.id, user);
    if (target.subresource !== 'eviction') return () => undefined;
    this.#evicted.add(target.id);
    return note(this.#evictions, target.id, user);
  }

  /** Users who are deleting the object. */
  deleters(bucket: string, key: string): readonly string[] {
    return this.#deletions.get(`${bucket} ${key}`) ?? [];
  }

  /** Whether a pod can only have been taken by an eviction. */
  isEvicted(key: string): boolean {
    return this.#evictions.has(`pods ${key}`) && !this.#deletions.has(`pods ${key}`);
  }

  /** Whether anybody ever asked for a pod to be evicted, with or without success. */
  wasEvicted(key: string): boolean {
    return this.#evicted.has(`pods ${key}`);
  }

  /** The server is gone, and all requests with it. */
  clear(): void {
    this.#deletions.clear();
    this.#evictions.clear();
  }
}

function note(notes: Map<string, string[]>, id: string, user: string): () => void {
  notes.set(id, [...(notes.get(id) ?? []), user]);
  return () => {
    const rest = [...(notes.get(id) ?? [])];
    rest.splice(rest.indexOf(user), 1);
    if (rest.length > 0) notes.set(id, rest);
    else notes.delete(id);
  };
}

/** `bucket key` of the object that a path names, and its subresource; undefined for a path that names none. */
function targetOf(path: string): { readonly id: string; readonly subresource: string } | undefined {
  const [, group = '', rest = ''] = /^\/(?:api\/v1|apis\/([^/]+)\/[^/]+)\/(.+)$/.exec(path) ?? [];
  const parts = rest.split('/');
  const isNamespaced = parts[0] === 'namespaces' && parts.length > 2;
  const [plural = '', name, subresource = ''] = isNamespaced ? parts.slice(2) : parts;
  if (name === undefined) return undefined;
  const bucket = group === '' ? plural : `${plural}.${group}`;
  return { id: `${bucket} ${isNamespaced ? `${parts[1]}/` : ''}${name}`, subresource };
}
