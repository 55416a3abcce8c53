import type { Uint } from './values.ts';

/** The syntax tree of an expression, macros already told apart. `at` is the offset that errors point to. */
export type Node =
  | { readonly op: 'literal'; readonly at: number; readonly value: Literal }
  | { readonly op: 'identifier'; readonly at: number; readonly name: string }
  | {
      readonly op: 'select';
      readonly at: number;
      readonly operand: Node;
      readonly field: string;
      /** `a.?b`. */
      readonly isOptional: boolean;
    }
  | { readonly op: 'has'; readonly at: number; readonly operand: Node; readonly field: string }
  | {
      readonly op: 'index';
      readonly at: number;
      readonly operand: Node;
      readonly index: Node;
      /** `a[?b]`. */
      readonly isOptional: boolean;
    }
  | {
      readonly op: 'call';
      readonly at: number;
      readonly name: string;
      readonly target: Node | undefined;
      readonly args: readonly Node[];
    }
  | { readonly op: 'and' | 'or'; readonly at: number; readonly operands: readonly Node[] }
  | {
      readonly op: 'conditional';
      readonly at: number;
      readonly condition: Node;
      readonly whenTrue: Node;
      readonly whenFalse: Node;
    }
  | { readonly op: 'list'; readonly at: number; readonly items: readonly ListItem[] }
  | { readonly op: 'map'; readonly at: number; readonly entries: readonly MapEntry[] }
  | Comprehension
  | {
      readonly op: 'bind';
      readonly at: number;
      readonly variable: string;
      readonly value: Node;
      readonly body: Node;
    }
  | {
      readonly op: 'optionalMap';
      readonly at: number;
      readonly operand: Node;
      readonly variable: string;
      readonly body: Node;
      /** Whether the body answers an optional itself. */
      readonly isFlat: boolean;
    };

export type Literal = null | boolean | bigint | number | string | Uint8Array | Uint;

export interface ListItem {
  readonly value: Node;
  readonly isOptional: boolean;
}

export interface MapEntry {
  readonly key: Node;
  readonly value: Node;
  readonly isOptional: boolean;
}

/** A macro that walks a list or a map. */
export interface Comprehension {
  readonly op: 'comprehension';
  readonly at: number;
  readonly kind: ComprehensionKind;
  readonly range: Node;
  /** One name: the item or key. Two: index and item, or key and value. */
  readonly variables: readonly string[];
  readonly filter: Node | undefined;
  readonly body: Node;
}

export type ComprehensionKind =
  | 'all'
  | 'exists'
  | 'existsOne'
  | 'filter'
  | 'map'
  | 'sortBy'
  | 'transformList'
  | 'transformMap'
  | 'transformMapEntry';
