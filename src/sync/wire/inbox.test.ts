import { describe, expect, it } from 'vitest';
import { turn } from '../../env/turn.ts';
import type { ReceivedHalf } from '../channel.ts';
import { type Answer, Inbox } from './inbox.ts';

/** An inbox whose deliveries end when the test says so. */
class Scene {
  readonly answers: Answer[] = [];
  readonly #deliveries: { readonly update: ReceivedHalf; readonly settle: () => void }[] = [];
  readonly inbox = new Inbox({
    deliver: (update) => new Promise((resolve) => this.#deliveries.push({ update, settle: resolve })),
    failed: () => undefined,
    answer: (answer) => void this.answers.push(answer),
  });

  hear(seq: number, key: string, version: number): void {
    const content = { kind: 'snapshot' as const, json: Buffer.from(JSON.stringify({ version })) };
    this.inbox.hear({ kind: 'update', seq, key, role: 'source', content });
  }

  /** What is being delivered of this key is durable; answers what that was. */
  async settle(key: string): Promise<unknown> {
    const at = this.#deliveries.findIndex(({ update }) => update.key === key);
    const [delivery] = this.#deliveries.splice(at, 1);
    delivery?.settle();
    await turn();
    return delivery?.update.half;
  }
}

describe('a peer whose process is replaced while its halves are being delivered', () => {
  it('hears nothing of a number that only its former process asked about', async () => {
    const scene = new Scene();
    scene.inbox.begin('old', undefined);
    scene.hear(1, 'a', 1);
    scene.hear(2, 'b', 1);
    scene.hear(3, 'a', 2);
    scene.inbox.begin('new', undefined);
    scene.hear(1, 'd', 1);
    scene.hear(2, 'e', 1);
    scene.hear(3, 'c', 1);
    expect([await scene.settle('a'), await scene.settle('a')]).toEqual([{ version: 1 }, { version: 2 }]);
    expect(scene.answers).toEqual([]);
    await scene.settle('c');
    expect(scene.answers).toEqual([{ seq: 3 }]);
  });

  it('is answered for what the new one says of the same key, and for nothing that waited before', async () => {
    const scene = new Scene();
    scene.inbox.begin('old', undefined);
    scene.hear(1, 'a', 1);
    scene.hear(2, 'a', 2);
    scene.inbox.begin('new', undefined);
    scene.hear(1, 'a', 3);
    scene.hear(2, 'c', 1);
    expect([await scene.settle('a'), await scene.settle('a')]).toEqual([{ version: 1 }, { version: 3 }]);
    expect(scene.answers).toEqual([{ seq: 1 }]);
  });

  it('is not answered for what was forgotten meanwhile, by the same number', async () => {
    const scene = new Scene();
    scene.inbox.begin('one', undefined);
    scene.hear(1, 'a', 1);
    scene.hear(2, 'a', 2);
    scene.inbox.reset();
    scene.inbox.begin('one', undefined);
    scene.hear(1, 'b', 1);
    scene.hear(2, 'c', 1);
    await scene.settle('a');
    await scene.settle('a');
    expect(scene.answers).toEqual([]);
  });
});
