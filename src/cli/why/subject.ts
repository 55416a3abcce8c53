import { UserError } from '../failure.ts';

/** What is asked about. */

export type Kind = 'vm' | 'vmi' | 'migration' | 'node';

const WORDS: { readonly [kind in Kind]: readonly string[] } = {
  vm: ['vm', 'vms', 'virtualmachine', 'virtualmachines'],
  vmi: ['vmi', 'vmis', 'virtualmachineinstance', 'virtualmachineinstances'],
  migration: [
    'migration',
    'migrations',
    'vmim',
    'vmims',
    'virtualmachineinstancemigration',
    'virtualmachineinstancemigrations',
  ],
  node: ['node', 'nodes', 'no'],
};

const KINDS: ReadonlyMap<string, Kind> = new Map(
  (Object.keys(WORDS) as Kind[]).flatMap((kind) => WORDS[kind].map((word) => [word, kind] as const)),
);

export interface Subject {
  /** Undefined where it has to be found out. */
  readonly kind: Kind | undefined;
  readonly name: string;
}

/** Understands `NAME`, `KIND NAME` and `KIND/NAME`. Throws UserError. */
export function parseSubject(words: readonly string[]): Subject {
  const [first = '', second] = words.length === 1 && words[0]?.includes('/') ? words[0].split('/', 2) : words;
  if (second === undefined) return { kind: undefined, name: first };
  const kind = KINDS.get(first.toLowerCase().replace(/\.kubevirt\.io$/, ''));
  if (kind === undefined)
    throw new UserError(
      `${JSON.stringify(first)} is none of vm, vmi, migration and node; give one of them, or the name alone`,
      {
        exitCode: 2,
      },
    );
  return { kind, name: second };
}

/** Which of the kinds that have something of this name is meant. Throws UserError where that is not clear. */
export function chosen({ kind, name }: Subject, found: readonly Kind[], namespace: string): Kind {
  // A guest of the same name is that of the machine.
  const kinds = found.includes('vm') ? found.filter((each) => each !== 'vmi') : found;
  const [only, ...more] = kind === undefined ? kinds : found.filter((each) => each === kind);
  if (only === undefined)
    throw new UserError(
      kind === 'node' || kind === undefined
        ? `there is no ${kind ?? 'virtual machine, migration or node'} ${name}${kind === 'node' ? '' : ` in namespace ${namespace}`}; 'godwit status' shows all there are`
        : `there is no ${kind} ${name} in namespace ${namespace}; 'godwit status' shows all there are`,
    );
  if (more.length > 0)
    throw new UserError(
      `${name} is the name of a ${[only, ...more].join(' and of a ')}; say which is meant: ${[only, ...more].map((each) => `'godwit why ${each} ${name}'`).join(' or ')}`,
      { exitCode: 2 },
    );
  return only;
}
