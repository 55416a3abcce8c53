import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import { type Transport, TransportError, type TransportRequest } from '../../kube/transport.ts';
import { Callers } from './callers.ts';

const { signal } = new AbortController();

/** An API server that answers reviews as it is told to. */
class Reviewer implements Transport {
  readonly asked: { path: string; spec: Record<string, unknown> }[] = [];
  answer: (spec: Record<string, unknown>) => object = () => ({});
  isAway = false;

  async send({ path, body = '' }: TransportRequest) {
    if (this.isAway) throw new TransportError('nobody is there');
    const { spec } = JSON.parse(body) as { spec: Record<string, unknown> };
    this.asked.push({ path: path.split('?')[0] ?? '', spec });
    const text = JSON.stringify({ status: this.answer(spec) });
    return {
      status: 201,
      headers: {},
      body: (async function* () {
        yield text;
      })(),
    };
  }

  close(): void {}
}

function scene() {
  const env = testEnv();
  const reviewer = new Reviewer();
  const callers = new Callers({ client: new Client(reviewer, 'agent'), clock: env.clock, node: 'n1' });
  return { env, reviewer, callers };
}

const bearer = (token: string) => ({ certificate: undefined, authorization: `Bearer ${token}` });

describe('callers', () => {
  it('are who their certificate says, without asking anybody', async () => {
    const { callers, reviewer } = scene();
    const certificate = { commonName: 'eve', organizations: ['staff', 'system:authenticated'] };
    const caller = await callers.identify({ certificate, authorization: 'Bearer ignored' }, signal);
    expect(caller).toEqual({ username: 'eve', groups: ['staff', 'system:authenticated'] });
    expect(reviewer.asked).toEqual([]);
  });

  it('are whom the API server knows their token for, for a moment', async () => {
    const { callers, reviewer, env } = scene();
    reviewer.answer = () => ({ authenticated: true, user: { username: 'eve', uid: '1', groups: ['staff'] } });
    const both = await Promise.all([callers.identify(bearer('t'), signal), callers.identify(bearer('t'), signal)]);
    expect(both[0]).toEqual({ username: 'eve', uid: '1', groups: ['staff'] });
    expect(reviewer.asked).toHaveLength(1);
    env.clock.advance(9_999);
    await callers.identify(bearer('t'), signal);
    expect(reviewer.asked).toHaveLength(1);
    reviewer.answer = () => ({ authenticated: false });
    env.clock.advance(1);
    await expect(callers.identify(bearer('t'), signal)).rejects.toMatchObject({ code: 401 });
  });

  it.each([undefined, '', 'Bearer', 'Basic abc', 'Bearer a b', `Bearer ${'x'.repeat(20_000)}`])(
    'are nobody by %s',
    async (authorization) => {
      const { callers, reviewer } = scene();
      await expect(callers.identify({ certificate: undefined, authorization }, signal)).rejects.toMatchObject({
        code: 401,
      });
      expect(reviewer.asked).toEqual([]);
    },
  );

  it('may what the API server lets, by any of the names that it goes by', async () => {
    const { callers, reviewer } = scene();
    const caller = { username: 'eve', groups: ['staff'] };
    reviewer.answer = ({ resourceAttributes }) => ({
      allowed: (resourceAttributes as { subresource: string }).subresource === 'proxy',
    });
    await callers.permit(caller, 'get', ['log', 'proxy'], signal);
    expect(reviewer.asked.map(({ spec }) => spec['resourceAttributes'])).toEqual(
      ['log', 'proxy'].map((subresource) => ({
        verb: 'get',
        version: 'v1',
        resource: 'nodes',
        subresource,
        name: 'n1',
      })),
    );
    expect(reviewer.asked[0]?.spec).toMatchObject({ user: 'eve', groups: ['staff'] });
    await expect(callers.permit(caller, 'get', ['log'], signal)).rejects.toMatchObject({ code: 403 });
    // Another verb is another question.
    await callers.permit(caller, 'update', ['proxy'], signal);
    expect(reviewer.asked).toHaveLength(3);
  });

  it('are told when nobody can tell, which is not remembered', async () => {
    const { callers, reviewer } = scene();
    reviewer.isAway = true;
    await expect(callers.identify(bearer('t'), signal)).rejects.toMatchObject({ code: 503 });
    await expect(callers.permit({ username: 'eve', groups: [] }, 'get', ['proxy'], signal)).rejects.toMatchObject({
      code: 503,
    });
    reviewer.isAway = false;
    reviewer.answer = () => ({ authenticated: true, allowed: true, user: { username: 'eve', groups: [] } });
    const caller = await callers.identify(bearer('t'), signal);
    await callers.permit(caller, 'get', ['proxy'], signal);
  });
});
