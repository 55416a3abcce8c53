/** Where an API server is, whom it is, and who asks: what a kubeconfig says, with its files read and its plug-ins run. */

/** Who asks. */
export interface Credentials {
  /** The `authorization` header. */
  readonly authorization?: string;
  /** A client certificate, with its chain, and its key; PEM. */
  readonly certificate?: string;
  readonly key?: string;
}

export interface ClusterAccess {
  /** An https URL; it may have a path, below which the API is. */
  readonly server: string;
  /** The context of a kubeconfig that says so. */
  readonly context?: string;
  /** The namespace to work in unless another is named. */
  readonly namespace: string;
  /** The name that the server's certificate must carry, where that is not the URL's host. */
  readonly serverName?: string;
  /** Whether any certificate of the server is taken. */
  readonly isInsecure: boolean;
  /** Headers that ask to be treated as somebody else; empty for oneself. */
  readonly impersonation: Readonly<Record<string, string | readonly string[]>>;
  /** Whose signature the server's certificate must carry, PEM; the system's authorities where undefined. */
  authorities(): Promise<string | undefined>;
  /** Asked before every request: implementations remember what is still good. Rejects with one sentence saying why not. */
  credentials(signal: AbortSignal): Promise<Credentials>;
  /** The server did not accept the credentials: none of what is remembered is good any more. */
  refused(): void;
}
