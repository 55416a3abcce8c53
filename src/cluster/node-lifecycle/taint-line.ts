/**
 * The nodes of a zone that wait to be given up: first come, first served, at the rate that the zone allows, each as
 * soon as the one before has had its time.
 */
export class TaintLine {
  readonly #waiting = new Set<string>();
  /** Those whose turn has come. They have it until they leave, however often it takes to write that down. */
  readonly #served = new Set<string>();
  #perSecond: number;
  #nextMs: number;

  constructor(perSecond: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#nextMs = perSecond > 0 ? nowMs : Number.POSITIVE_INFINITY;
  }

  /** Another rate takes effect at once, but who has just been served still has the time to itself. */
  setRate(perSecond: number, nowMs: number): void {
    if (perSecond === this.#perSecond) return;
    const isBusy = nowMs < this.#nextMs;
    this.#perSecond = perSecond;
    if (perSecond === 0) this.#nextMs = Number.POSITIVE_INFINITY;
    else this.#nextMs = isBusy ? nowMs + 1000 / perSecond : nowMs;
  }

  /** Whether it is the node's turn; it waits in line where it is not. */
  ask(node: string, nowMs: number): boolean {
    if (this.#served.has(node)) return true;
    this.#waiting.add(node);
    const [first] = this.#waiting;
    if (first !== node || nowMs < this.#nextMs) return false;
    this.#waiting.delete(node);
    this.#served.add(node);
    this.#nextMs = nowMs + 1000 / this.#perSecond;
    return true;
  }

  leave(node: string): void {
    this.#waiting.delete(node);
    this.#served.delete(node);
  }

  /** Whose turn is next, and when; undefined where nobody waits or none may go. */
  next(): { readonly node: string; readonly atMs: number } | undefined {
    const [node] = this.#waiting;
    return node === undefined || this.#nextMs === Number.POSITIVE_INFINITY ? undefined : { node, atMs: this.#nextMs };
  }
}
