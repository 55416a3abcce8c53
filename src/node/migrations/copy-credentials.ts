import type { MigrationTls } from '../../hypervisor/migration.ts';
import type { CredentialFiles } from './copy-options.ts';
import type { SourceCredentials } from './peer.ts';

/** What the machines of a source and of its target know each other by: made for one migration, and for nothing else. */
export interface CopyCredentials {
  /**
   * Makes both sides', and calls back with where those of a target are, which stay there until that is done. Answers what
   * came of it, and the source's.
   */
  issue<T>(
    podUID: string,
    use: (tls: MigrationTls) => Promise<T>,
  ): Promise<{ readonly used: T; readonly source: SourceCredentials }>;
  /** Puts a source's where its machine can read them. */
  write(podUID: string, credentials: SourceCredentials): Promise<CredentialFiles>;
}
