import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LoopScene } from '../loops.fixture.ts';
import { secrets } from '../resources.ts';
import { tokenCleanerLoop } from './loop.ts';

const scene = new LoopScene(tokenCleanerLoop);
beforeAll(() => scene.start());
afterAll(() => scene.stop());

const encode = (text: string): string => Buffer.from(text).toString('base64');
const at = (afterMs: number): string => new Date(scene.clock.now() + afterMs).toISOString();

async function make(id: string, expiration?: string, type = 'bootstrap.kubernetes.io/token'): Promise<string> {
  const name = `bootstrap-token-${id}`;
  const data = { 'token-id': encode(id), ...(expiration === undefined ? {} : { expiration: encode(expiration) }) };
  await scene.create(secrets, { metadata: { name, namespace: 'kube-system' }, type, data });
  return name;
}

const isThere = (name: string): Promise<boolean> =>
  scene.get(secrets, 'kube-system', name).then(
    () => true,
    () => false,
  );

describe('bootstrap tokens', () => {
  it('go when their time is over, not before', async () => {
    const [soon, never, broken, other] = [
      await make('soon00', at(60_000)),
      await make('never0'),
      await make('broken', 'tomorrow'),
      await make('other0', at(-1), 'Opaque'),
    ];
    await scene.until(async () => expect(await isThere(broken)).toBe(false));
    scene.clock.advance(50_000);
    await scene.settle();
    expect(await isThere(soon)).toBe(true);
    scene.clock.advance(10_000);
    await scene.until(async () => expect(await isThere(soon)).toBe(false));
    expect(await isThere(never)).toBe(true);
    expect(await isThere(other)).toBe(true);
  });

  it('stay when their time was prolonged', async () => {
    const name = await make('longer', at(60_000));
    await scene.settle();
    const body = { data: { expiration: encode(at(120_000)) } };
    await scene.client.patch(secrets, 'kube-system', name, { type: 'merge', body }, scene.signal);
    await scene.settle();
    scene.clock.advance(70_000);
    await scene.settle();
    expect(await isThere(name)).toBe(true);
    scene.clock.advance(60_000);
    await scene.until(async () => expect(await isThere(name)).toBe(false));
  });
});
