import { FAULT_CLASSES } from './fault-mix.ts';
import type { Plan } from './plan.ts';

/**
 * What of a seed's plan is left after shrinking, as a text that fits on a command line:
 * `ms=383101 faults=crash,stale strikes=3,5 actions=1,7`. Strikes and actions are told by their place in the whole plan.
 */

/** The text cannot be understood; the message says why. */
export class BadExcerpt extends Error {}

export function excerptOf(plan: Plan, whole: Plan): string {
  const places = <T>(kept: readonly T[], all: readonly T[]): string => kept.map((item) => all.indexOf(item)).join(',');
  return [
    `ms=${plan.horizonMs}`,
    `faults=${plan.faults.join(',')}`,
    `strikes=${places(plan.strikes, whole.strikes)}`,
    `actions=${places(plan.actions, whole.actions)}`,
  ].join(' ');
}

/** The part of the plan that the text tells. Throws BadExcerpt. */
export function excerpt(whole: Plan, text: string): Plan {
  const parts = new Map(text.split(' ').map((part) => splitAt(part)));
  for (const name of parts.keys())
    if (!['ms', 'faults', 'strikes', 'actions'].includes(name)) throw new BadExcerpt(`it has no part ${name}`);
  const horizonMs = Number(parts.get('ms') ?? whole.horizonMs);
  if (!(horizonMs > 0)) throw new BadExcerpt('ms must be a positive number');
  return {
    ...whole,
    horizonMs,
    faults: listOf(parts.get('faults')).map((name) => {
      const fault = FAULT_CLASSES.find((each) => each === name);
      if (!fault) throw new BadExcerpt(`there is no fault ${name}`);
      return fault;
    }),
    strikes: pick(whole.strikes, parts.get('strikes'), 'strike'),
    actions: pick(whole.actions, parts.get('actions'), 'action'),
  };
}

function splitAt(part: string): [string, string] {
  const mark = part.indexOf('=');
  if (mark < 0) throw new BadExcerpt(`${part} has no =`);
  return [part.slice(0, mark), part.slice(mark + 1)];
}

function listOf(text = ''): string[] {
  return text === '' ? [] : text.split(',');
}

function pick<T>(items: readonly T[], text: string | undefined, what: string): T[] {
  return listOf(text).map((place) => {
    const item = /^\d+$/.test(place) ? items[Number(place)] : undefined;
    if (item === undefined) throw new BadExcerpt(`this seed has no ${what} ${place}`);
    return item;
  });
}
