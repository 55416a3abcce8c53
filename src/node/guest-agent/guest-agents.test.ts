import { beforeEach, describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { ANSWERS, FakeAgent } from './fake-agent.fixture.ts';
import { GuestAgents } from './guest-agents.ts';

let agent: FakeAgent;
let env: ReturnType<typeof testEnv>;
let agents: GuestAgents;
let news: number;

beforeEach(() => {
  agent = new FakeAgent();
  env = testEnv();
  news = 0;
  agents = new GuestAgents({ env, onNews: () => news++ });
});

/** Lets all happen that needs no time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await Promise.resolve();
}

async function pass(ms: number, steps = 1): Promise<void> {
  for (let step = 0; step < steps; step++) {
    env.clock.advance(ms / steps);
    await settle();
  }
}

async function attend(): Promise<void> {
  agents.attend('p', agent.machine());
  await settle();
}

const isConnected = (): boolean => typeof agents.of('p') === 'object';

describe('a guest without an agent', () => {
  it('is looked at once, and never asked', async () => {
    expect(agents.of('p')).toBe('unknown');
    await attend();
    await pass(86_400_000, 100);
    expect([agents.of('p'), agent.looks, agent.asked, agent.connections]).toEqual(['absent', 1, [], 0]);
  });
});

describe('an agent', () => {
  it('is known as soon as it comes, and no more when it goes', async () => {
    await attend();
    agent.comes();
    await settle();
    expect(agents.of('p')).toMatchObject({ hostname: 'tern', os: { name: 'Debian' } });
    agent.goes();
    await settle();
    expect([agents.of('p'), agent.connections]).toEqual(['absent', 0]);
  });

  it('that was there before us is found', async () => {
    agent.isThere = true;
    await attend();
    expect(isConnected()).toBe(true);
  });

  it('is asked now and then; nobody is told while it says the same', async () => {
    agent.isThere = true;
    await attend();
    const told = news;
    await pass(600_000, 100);
    expect(agent.asked.filter((each) => each === 'guest-get-osinfo')).toHaveLength(11);
    expect(news).toBe(told);
    agent.answers = { ...ANSWERS, 'guest-get-host-name': { 'host-name': 'curlew' } };
    await pass(60_000);
    expect(agents.of('p')).toMatchObject({ hostname: 'curlew' });
    expect(news).toBe(told + 1);
  });

  it('that answers no more has gone, until it answers again', async () => {
    agent.isThere = true;
    await attend();
    agent.isSilent = true;
    await pass(60_000);
    await pass(10_000);
    expect([agents.of('p'), agent.connections]).toEqual(['absent', 0]);
    agent.isSilent = false;
    await pass(60_000, 60);
    expect(isConnected()).toBe(true);
  });

  it('of a guest that is held is left alone, and there when the guest goes on', async () => {
    agent.isThere = true;
    await attend();
    agent.becomes('paused');
    agent.isSilent = true;
    await pass(600_000, 60);
    expect(isConnected()).toBe(true);
    agent.isSilent = false;
    agent.becomes('running');
    await settle();
    expect(isConnected()).toBe(true);
  });

  it('sets the clock of a guest that stood still, once, as soon as it answers', async () => {
    agent.answers = { ...ANSWERS, 'guest-set-time': {} };
    agent.status = 'incoming';
    agent.isThere = true;
    await attend();
    agents.setClock('p');
    await settle();
    expect(agent.asked).toEqual([]);
    agent.becomes('running');
    await settle();
    expect(agent.asked.filter((command) => command === 'guest-set-time')).toHaveLength(1);
    expect(agent.said.at(-1)).toEqual({ time: env.clock.now() * 1_000_000 });
    await pass(300_000, 10);
    expect(agent.asked.filter((command) => command === 'guest-set-time')).toHaveLength(1);
  });

  it('that comes and goes all the time is told of ever less', async () => {
    await attend();
    for (let second = 0; second < 3600; second++) {
      if (second % 2 === 0) agent.comes();
      else agent.goes();
      await settle();
      await pass(1000);
    }
    expect(news).toBeLessThan(40);
  });

  it('is let alone when its machine ends, and when all are let go of', async () => {
    agent.isThere = true;
    await attend();
    agent.ends();
    await settle();
    expect([agents.of('p'), agent.connections]).toEqual(['unknown', 0]);
    const another = new FakeAgent();
    another.isThere = true;
    agents.attend('q', another.machine());
    await settle();
    agents.letGo();
    await settle();
    expect(another.connections).toBe(0);
    const asked = another.asked.length;
    await pass(600_000, 10);
    expect(another.asked).toHaveLength(asked);
  });
});
