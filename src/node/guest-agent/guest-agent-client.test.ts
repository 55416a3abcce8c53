import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { FakeAgent } from './fake-agent.fixture.ts';
import { GuestAgentClient, GuestAgentError } from './guest-agent-client.ts';
import { askInfo } from './guest-agent-info.ts';

async function open(answers: FakeAgent['answers'] = {}): Promise<{
  agent: FakeAgent;
  client: GuestAgentClient;
  env: ReturnType<typeof testEnv>;
}> {
  const [agent, env] = [new FakeAgent(), testEnv()];
  agent.answers = { ...agent.answers, ...answers };
  return { agent, env, client: await GuestAgentClient.connect({ channel: agent, ...env }) };
}

describe('what an agent says of its guest', () => {
  it('is told', async () => {
    const { agent, client } = await open();
    expect(await askInfo(client)).toEqual({
      version: '7.2.0',
      hostname: 'tern',
      os: {
        id: 'debian',
        name: 'Debian',
        prettyName: 'Debian 12',
        versionId: '12',
        kernelRelease: '6.1.0',
        machine: 'x86_64',
      },
    });
    expect(agent.asked).toEqual(['guest-sync-delimited', 'guest-info', 'guest-get-osinfo', 'guest-get-host-name']);
  });

  it('is less where it does not know a command', async () => {
    const { client } = await open({ 'guest-get-osinfo': undefined });
    expect(await askInfo(client)).toEqual({ version: '7.2.0', hostname: 'tern', os: {} });
  });

  it.each<[string, unknown, string]>([
    ['cut where it is long', { 'host-name': 'x'.repeat(5000) }, 'x'.repeat(256)],
    ['one line', { 'host-name': ' a\nb\u0000\u001b[31m\u2028c ' }, 'a b  [31m c'],
    ['nothing where it is no text', { 'host-name': { toString: 'x' } }, ''],
    ['nothing where it is no object', ['host-name'], ''],
    ['nothing where it is inherited', JSON.parse('{"__proto__":{"host-name":"x"}}'), ''],
  ])('is %s', async (_, answer, hostname) => {
    const { client } = await open({ 'guest-get-host-name': answer });
    expect((await askInfo(client)).hostname).toBe(hostname);
  });
});

describe('an agent that had something to say to others', () => {
  it('is heard from where both agree that answers begin', async () => {
    const { agent, client } = await open();
    agent.says('{"return": {"host-name": "late');
    await client.sync();
    expect(await client.ask('guest-get-host-name')).toEqual({ 'host-name': 'tern' });
  });

  it('may say it in pieces', async () => {
    const { agent, client } = await open({ 'guest-info': '{"return": ' });
    await client.sync();
    const answer = client.ask('guest-info');
    agent.says('{"version"');
    agent.says(':"9"}}\n');
    expect(await answer).toEqual({ version: '9' });
  });
});

describe('an agent is not heard again that', () => {
  it.each<[string, FakeAgent['answers'], RegExp]>([
    ['says too much before it answers', { 'guest-sync-delimited': 'x'.repeat(100_000) }, /too much/],
    ['answers without an end', { 'guest-info': 'x'.repeat(70_000) }, /too much/],
    ['says no JSON', { 'guest-info': 'hello\n' }, /cannot be read/],
    ['says no object', { 'guest-info': 'null\n' }, /cannot be read/],
  ])('%s', async (_, answers, reason) => {
    const { client } = await open(answers);
    await expect(askInfo(client)).rejects.toThrow(reason);
    await expect(client.ask('guest-info')).rejects.toThrow(GuestAgentError);
    expect(client.isClosed).toBe(true);
  });

  it('does not say where its answers begin', async () => {
    const { client, env } = await open({ 'guest-sync-delimited': '{"return": 1}\n' });
    const failed = expect(client.sync()).rejects.toThrow(/in time/);
    env.clock.advance(10_000);
    await failed;
  });

  it('answers with somebody else’s number', async () => {
    const { agent, client } = await open();
    agent.isSilent = true;
    const synced = expect(client.sync()).rejects.toThrow(/was not asked/);
    agent.says(Buffer.concat([Buffer.of(0xff), Buffer.from('{"return": 7}\n')]));
    await synced;
  });

  it('does not answer in time', async () => {
    const { agent, client, env } = await open();
    agent.isSilent = true;
    const failed = expect(askInfo(client)).rejects.toThrow(/in time/);
    env.clock.advance(10_000);
    await failed;
  });

  it('talks on without being asked', async () => {
    const { agent, client } = await open();
    await client.sync();
    for (let line = 0; line < 100; line++) agent.says(`${'x'.repeat(100)}\n`);
    expect(client.isClosed).toBe(true);
  });
});
