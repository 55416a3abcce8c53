import type { Budget } from './budget.ts';
import type { Type } from './types.ts';
import type { Value } from './values.ts';

/** The state of one evaluation: variables by slot. */
export interface Frame {
  readonly slots: (Value | undefined)[];
  readonly budget: Budget;
}

/** A compiled node: evaluates itself in a frame. */
export type Run = (frame: Frame) => Value;

/** A compiled node and what is known of its value before evaluation. */
export interface Typed {
  readonly type: Type;
  readonly run: Run;
}
