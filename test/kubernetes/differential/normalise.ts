import type { Anything } from '../../support/api.ts';

const UID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /\b(\d{4})-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g;
/** Times before this year are what the requests said, and not what a server's clock did. */
const FIRST_YEAR_OF_CLOCKS = 2025;
const TOKEN = /eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+/g;
const AGE = /^(\d+[smhd])+$/;
const GENERATED_LENGTH = 5;
/** How identities begin that the requests themselves made up. */
const OWN_UID = '11111111-';

/**
 * Takes from one server's answers what no two servers have in common. Identities get the names of their objects, and versions of an
 * object get numbers in the order of their appearance, so that it still shows whether two answers speak of the same one.
 */
export class Normaliser {
  readonly #namespace: string;
  /** Of which object an identity is. */
  readonly #owners = new Map<string, string>();
  /** The versions of each object that have come so far. */
  readonly #versions = new Map<string, string[]>();
  readonly #generated: string[] = [];

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /** The same value without what only one server can know. */
  value(value: Anything): unknown {
    this.#learn(value);
    return this.#visit(value, '');
  }

  text(text: string): string {
    let result = text
      .replaceAll(/("?Made_)[a-z0-9]{5}/g, '$1<name>')
      .replaceAll(this.#namespace, '$ns')
      .replaceAll(UID, (uid) => this.#owners.get(uid) ?? uid)
      .replaceAll(TOKEN, '<token>')
      .replaceAll(TIME, (all, year: string, fraction: string | undefined) =>
        Number(year) < FIRST_YEAR_OF_CLOCKS ? all : `<time${fraction === undefined ? '' : ` ${fraction.length - 1}`}>`,
      )
      .replace(/too old resource version: \d+ \(\d+\)/, 'too old resource version: <version> (<version>)')
      .replace(/(resource version: |current: |ResourceVersion in record \()\d+/gi, '$1<version>')
      .replaceAll(/and has \d+ currently/g, 'and has <count> currently')
      .replaceAll(/127\.0\.0\.1:\d+/g, '<address>');
    for (const name of this.#generated) result = result.replaceAll(name, name.slice(0, -GENERATED_LENGTH) + '<name>');
    return result;
  }

  /** Names that a server has made up, wherever they come. */
  #learn(value: Anything): void {
    if (typeof value !== 'object' || value === null) return;
    const { generateName, name, uid } = value;
    if (typeof name === 'string' && isGenerated(generateName, name) && !this.#generated.includes(name))
      this.#generated.push(name);
    if (typeof name === 'string' && typeof uid === 'string' && !uid.startsWith(OWN_UID) && !this.#owners.has(uid))
      this.#owners.set(uid, `<uid of ${this.text(name)}>`);
    for (const member of Object.values(value)) this.#learn(member);
  }

  #visit(value: Anything, key: string): unknown {
    if (typeof value === 'string') return this.#string(value, key);
    if (Array.isArray(value))
      return (key === 'managedFields' ? sorted(value) : value).map((item) => this.#item(item, key));
    if (typeof value !== 'object' || value === null) return value;
    if (isColumn(value)) return { ...value, description: '<in words of its own>' };
    if (Array.isArray(value.details?.causes)) return this.#visit(withSortedCauses(value), '');
    const isNamed = typeof value.uid === 'string';
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        this.text(name),
        name === 'resourceVersion' && typeof member === 'string' && member !== ''
          ? `<version${isNamed ? ` ${this.#numberOf(member, value.uid)}` : ''}>`
          : this.#visit(member, name),
      ]),
    );
  }

  #numberOf(version: string, uid: string): number {
    const known = this.#versions.get(uid) ?? [];
    this.#versions.set(uid, known);
    if (!known.includes(version)) known.push(version);
    return known.indexOf(version) + 1;
  }

  #item(item: Anything, key: string): unknown {
    return key === 'cells' && typeof item === 'string' && AGE.test(item) ? '<age>' : this.#visit(item, '');
  }

  #string(text: string, key: string): string {
    return key === 'continue' && text !== '' ? '<continue>' : this.text(text);
  }
}

/** In which order causes are found, and how often, is no matter; they are told once each, and so is the sentence made of them. */
function withSortedCauses(status: Anything): Anything {
  const { causes: given, ...details } = status.details;
  const byText = new Map<string, Anything>(given.map((cause: Anything) => [`${cause.field}: ${cause.message}`, cause]));
  const texts = [...byText.keys()].toSorted();
  const [subject] = status.message.split(' is invalid: ');
  const isList = status.message.startsWith(`${subject} is invalid: [`);
  const message = isList ? `${subject} is invalid: [${texts.join(', ')}]` : status.message;
  return { ...status, message, details: { ...details, sortedCauses: texts.map((text) => byText.get(text)) } };
}

/** Entries of one second come in an order that depends on when the second began. */
function sorted(entries: readonly Anything[]): Anything[] {
  const rank = ({ operation, manager, subresource = '' }: Anything): string => `${operation} ${manager} ${subresource}`;
  return entries.toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1));
}

/** Columns of tables are described in each server's own words. */
function isColumn(value: Anything): boolean {
  return ['name', 'type', 'format', 'description', 'priority'].every((key) => Object.hasOwn(value, key));
}

function isGenerated(prefix: unknown, name: string): boolean {
  return typeof prefix === 'string' && name.startsWith(prefix) && name.length === prefix.length + GENERATED_LENGTH;
}
