import type { LoadConnection } from '../load-connection.ts';
import { until } from '../migration/until.ts';

interface Migration {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly { readonly type: string; readonly reason?: string; readonly message?: string }[];
  };
}

/** The migrations of a namespace as a watch shows them. */
export class SeenMigrations {
  /** When each was first seen to be in a phase. */
  readonly #phases = new Map<string, Map<string, number>>();
  readonly #reasons = new Map<string, string>();
  readonly path: string;

  private constructor(namespace: string) {
    this.path = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstancemigrations`;
  }

  static async on(connection: LoadConnection, namespace: string): Promise<SeenMigrations> {
    const seen = new SeenMigrations(namespace);
    let rest = '';
    await connection.watch(`${seen.path}?watch=true`, (bytes) => {
      const lines = (rest + bytes.toString('utf8')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) seen.#see((JSON.parse(line) as { object: Migration }).object);
    });
    return seen;
  }

  /** The names of all that were seen in a phase. */
  in(phase: string): string[] {
    return [...this.#phases].filter(([, phases]) => phases.has(phase)).map(([name]) => name);
  }

  /** Why one has failed. */
  reasonOf(name: string): string {
    return this.#reasons.get(name) ?? 'for no reason';
  }

  /** Resolves when a migration has succeeded, with when that was seen; rejects when it has failed. */
  succeeded(name: string): Promise<number> {
    return until(() => {
      const phases = this.#phases.get(name);
      if (phases?.has('Failed')) throw new Error(`${name} has failed: ${this.reasonOf(name)}`);
      return phases?.get('Succeeded');
    }, `${name} does not end`);
  }

  #see({ metadata, status }: Migration): void {
    const { phase, conditions = [] } = status ?? {};
    if (phase === undefined) return;
    const phases = this.#phases.get(metadata.name) ?? new Map<string, number>();
    this.#phases.set(metadata.name, phases);
    if (!phases.has(phase)) phases.set(phase, performance.now());
    const failure = conditions.find(({ type }) => type === 'migrationFailed');
    if (failure) this.#reasons.set(metadata.name, `${failure.reason}: ${failure.message}`);
  }
}
