import { inspect } from 'node:util';

/** How many causes of an error are told; an error can be its own cause. */
const CAUSES_MAX = 5;
const TEXT_LENGTH_MAX = 500;

/** Anything thrown, for a log line: its message, and those of its causes. Never throws itself. */
export function errorText(error: unknown): string {
  const texts = [textOf(error)];
  for (let cause = causeOf(error); cause !== undefined && texts.length < CAUSES_MAX; cause = causeOf(cause)) {
    texts.push(textOf(cause));
  }
  return texts.join('; caused by ');
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

function textOf(error: unknown): string {
  if (error instanceof Error) return `${error.name}: ${error.message}`;
  const text = typeof error === 'string' ? error : inspect(error, { depth: 1, breakLength: Number.POSITIVE_INFINITY });
  return text.slice(0, TEXT_LENGTH_MAX);
}
