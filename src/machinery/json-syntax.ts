/**
 * What is wrong with text that JSON.parse has refused. The engine's own message quotes the text around the mistake,
 * and what is around it may be a secret on its way to a log; this one quotes a single character and says where it is.
 */

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORDS = ['true', 'false', 'null'];
const SPACES = /[ \t\r\n]*/y;

/** The first mistake, in the words of Go's decoder. */
export function describeJsonError(text: string): string {
  return new Syntax(text).describe();
}

type Expectation = 'value' | 'first-value' | 'key' | 'first-key' | 'colon' | 'comma';

/** Walks without recursion: what is malformed may also be deep. */
class Syntax {
  readonly #text: string;
  readonly #open: ('{' | '[')[] = [];
  #position = 0;
  #expected: Expectation = 'value';

  constructor(text: string) {
    this.#text = text;
  }

  describe(): string {
    for (;;) {
      this.#position = this.#match(SPACES) ?? this.#position;
      const character = this.#text[this.#position];
      if (this.#expected === 'comma' && this.#open.length === 0) return this.#wrong('after top-level value');
      if (character === undefined) return 'unexpected end of JSON input';
      const failure = this.#step(character);
      if (failure !== undefined) return failure;
    }
  }

  #step(character: string): string | undefined {
    switch (this.#expected) {
      case 'value':
        return this.#value(character);
      case 'first-value':
        return character === ']' ? this.#close() : this.#value(character);
      case 'first-key':
        return character === '}' ? this.#close() : this.#key(character);
      case 'key':
        return this.#key(character);
      case 'colon':
        if (character !== ':') return this.#wrong('after object key');
        this.#position++;
        this.#expected = 'value';
        return undefined;
      case 'comma':
        return this.#afterValue(character);
      default:
        return this.#expected satisfies never;
    }
  }

  #afterValue(character: string): string | undefined {
    const inObject = this.#open.at(-1) === '{';
    if (character === (inObject ? '}' : ']')) return this.#close();
    if (character !== ',') return this.#wrong(inObject ? 'after object key:value pair' : 'after array element');
    this.#position++;
    this.#expected = inObject ? 'key' : 'value';
    return undefined;
  }

  #close(): undefined {
    this.#position++;
    this.#open.pop();
    this.#expected = 'comma';
  }

  #key(character: string): string | undefined {
    if (character !== '"') return this.#wrong('looking for beginning of object key string');
    this.#expected = 'colon';
    return this.#string();
  }

  #value(character: string): string | undefined {
    if (character === '{' || character === '[') {
      this.#open.push(character);
      this.#position++;
      this.#expected = character === '{' ? 'first-key' : 'first-value';
      return undefined;
    }
    this.#expected = 'comma';
    if (character === '"') return this.#string();
    const word = WORDS.find((each) => this.#text.startsWith(each, this.#position));
    const end = word === undefined ? this.#match(NUMBER) : this.#position + word.length;
    if (end === undefined) return this.#wrong('looking for beginning of value');
    this.#position = end;
    return undefined;
  }

  #string(): string | undefined {
    for (this.#position++; ; this.#position++) {
      const character = this.#text[this.#position];
      if (character === undefined) return 'unexpected end of JSON input';
      if (character < ' ') return this.#wrong('in string literal');
      if (character === '\\' && !this.#escape()) return this.#wrong('in string escape code');
      if (character === '"') break;
    }
    this.#position++;
    return undefined;
  }

  /** Steps onto the last character of an escape, or onto the first that is wrong. */
  #escape(): boolean {
    this.#position++;
    const letter = this.#text[this.#position] ?? '';
    if (letter !== 'u') return letter !== '' && '"\\/bfnrt'.includes(letter);
    for (let digit = 0; digit < 4; digit++) {
      this.#position++;
      if (!/^[0-9a-fA-F]$/.test(this.#text[this.#position] ?? '')) return false;
    }
    return true;
  }

  #match(pattern: RegExp): number | undefined {
    pattern.lastIndex = this.#position;
    return pattern.test(this.#text) ? pattern.lastIndex : undefined;
  }

  #wrong(where: string): string {
    const character = this.#text[this.#position];
    if (character === undefined) return 'unexpected end of JSON input';
    return `invalid character ${JSON.stringify(character)} ${where}, at position ${this.#position}`;
  }
}
