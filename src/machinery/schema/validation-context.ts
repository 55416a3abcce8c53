import type { FieldError } from '../../api/field-error.ts';
import { type Path, spell } from './path.ts';

/** Errors reported of one object: enough to mend it, few enough to send and read. */
export const ERRORS_MAX = 100;

/** Steps that the patterns of a schema may take on one object, about a second: each is cheap, but few texts need many. */
export const PATTERN_STEPS_MAX = 100_000_000;

/** The same errors, each once: branches of a schema often find the same. */
export function unique(errors: readonly FieldError[]): FieldError[] {
  const seen = new Map<string, FieldError>();
  for (const error of errors) {
    const text = `${error.field}: ${error.message}`;
    if (!seen.has(text)) seen.set(text, error);
  }
  return [...seen.values()];
}

/** The state of one walk: where it is, and what it found. */
export class ValidationContext {
  readonly path: Path;
  readonly errors: FieldError[] = [];
  /** Shared by all walks over the same object. */
  readonly #work: { patternSteps: number };

  constructor(path: Path = [], work: { patternSteps: number } = { patternSteps: 0 }) {
    this.path = path;
    this.#work = work;
  }

  /** Whether so many more steps of a pattern can be taken; they then count as taken. */
  affords(patternSteps: number): boolean {
    if (this.#work.patternSteps + patternSteps > PATTERN_STEPS_MAX) return false;
    this.#work.patternSteps += patternSteps;
    return true;
  }

  /** Whether enough has been found: walks stop here. */
  get isFull(): boolean {
    return this.errors.length >= ERRORS_MAX;
  }

  /** The path of the value being looked at. */
  get field(): string {
    return spell(this.path);
  }

  add(error: FieldError): void {
    if (!this.isFull) this.errors.push(error);
  }

  /** The same place, with findings of its own: for alternatives of which not all need to hold. */
  fork(): ValidationContext {
    return new ValidationContext(this.path, this.#work);
  }
}
