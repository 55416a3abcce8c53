import { KubeconfigError } from './kubeconfig-ports.ts';

/** A part of a kubeconfig, read field by field, with errors that say where. */
export class Fields {
  /** The file and the way to this part. */
  readonly where: string;
  readonly #file: string;
  readonly #path: string;
  readonly #values: ReadonlyMap<string, unknown>;

  private constructor(file: string, path: string, values: object) {
    this.#file = file;
    this.#path = path;
    this.where = path === '' ? file : `${file}: ${path}`;
    this.#values = new Map(Object.entries(values));
  }

  /** Throws unless the value is a mapping. An empty document is an empty mapping. */
  static of(file: string, path: string, value: unknown): Fields {
    if (value === null || value === undefined) return new Fields(file, path, {});
    if (typeof value !== 'object' || Array.isArray(value))
      throw new KubeconfigError(`${path === '' ? file : `${file}: ${path}`} must be a mapping`);
    return new Fields(file, path, value);
  }

  #at(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`;
  }

  /** An error about one field. */
  error(name: string, what: string, cause?: unknown): KubeconfigError {
    return new KubeconfigError(`${this.#file}: ${this.#at(name)} ${what}`, cause);
  }

  has(name: string): boolean {
    const value = this.#values.get(name);
    return value !== undefined && value !== null && value !== '';
  }

  /** Undefined where the field is missing or empty. */
  text(name: string): string | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#values.get(name);
    if (typeof value !== 'string') throw this.error(name, 'must be text (a number or a boolean needs quotes)');
    return value;
  }

  requiredText(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw this.error(name, 'is missing');
    return value;
  }

  flag(name: string): boolean {
    if (!this.has(name)) return false;
    const value = this.#values.get(name);
    if (typeof value !== 'boolean') throw this.error(name, 'must be true or false');
    return value;
  }

  /** Text that was encoded in base64, PEM in all its uses here. */
  pem(name: string): string | undefined {
    const encoded = this.text(name)?.replace(/\s/g, '');
    if (encoded === undefined) return undefined;
    const text = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded) ? Buffer.from(encoded, 'base64').toString('utf8') : '';
    if (!text.includes('-----BEGIN ')) throw this.error(name, 'must be PEM encoded in base64');
    return text;
  }

  object(name: string): Fields {
    return Fields.of(this.#file, this.#at(name), this.#values.get(name));
  }

  list(name: string): Fields[] {
    return this.#array(name).map((item, index) => Fields.of(this.#file, `${this.#at(name)}[${index}]`, item));
  }

  texts(name: string): string[] {
    return this.#array(name).map((item, index) => {
      if (typeof item !== 'string') throw this.error(`${name}[${index}]`, 'must be text');
      return item;
    });
  }

  /** The same, but for some fields of one of its parts; undefined takes a field away. Throws unless that is a mapping. */
  changed(name: string, changes: Readonly<Record<string, unknown>>): Fields {
    const part = { ...Object.fromEntries(this.object(name).#values), ...changes };
    return new Fields(this.#file, this.#path, { ...Object.fromEntries(this.#values), [name]: part });
  }

  raw(name: string): unknown {
    return this.#values.get(name);
  }

  names(): string[] {
    return [...this.#values.keys()];
  }

  #array(name: string): readonly unknown[] {
    const value = this.#values.get(name);
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) throw this.error(name, 'must be a list');
    return value;
  }
}
