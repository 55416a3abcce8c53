import type { Type } from './types.ts';

/** Names of variables, innermost first. Each variable has a slot of its own in the frame. */
export class Scope {
  readonly #parent: Scope | undefined;
  readonly #variables = new Map<string, { readonly slot: number; readonly type: Type }>();

  constructor(parent?: Scope) {
    this.#parent = parent;
  }

  declare(name: string, type: Type, slot: number): number {
    this.#variables.set(name, { slot, type });
    return slot;
  }

  find(name: string): { readonly slot: number; readonly type: Type; readonly isRoot: boolean } | undefined {
    const own = this.#variables.get(name);
    if (own) return { ...own, isRoot: this.#parent === undefined };
    return this.#parent?.find(name);
  }
}
