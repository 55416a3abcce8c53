import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Acceptance } from './accept.ts';
import { ACCEPTED } from './accepted.ts';
import { ask } from './ask.ts';
import { compare, describeDifference, misunderstood } from './compare.ts';
import { GROUPS } from './requests/groups.ts';
import { type TwoServers, twoServers } from './two-servers.ts';

/**
 * The same requests go to the embedded API and to a real kube-apiserver, and get the same answers. What differs and stays so is in
 * accepted.ts, with the reason.
 */

let servers: TwoServers;
const run = Date.now().toString(36).slice(-5);
const acceptance = new Acceptance(ACCEPTED);
let asked = 0;
let accepted = 0;

beforeAll(async () => {
  servers = await twoServers();
});
afterAll(async () => {
  console.log(`differential: ${asked} requests compared, ${accepted} differences accepted`);
  await servers?.stop();
});

describe('the embedded API answers as kube-apiserver does', () => {
  it.for(GROUPS)('$name', async (group) => {
    const namespace = `diff-${group.name.replaceAll(' ', '-')}-${run}`;
    const [embedded, real] = await Promise.all([
      ask(servers.embedded, group, namespace),
      ask(servers.real, group, namespace),
    ]);
    const unexpected: string[] = [];
    for (const [request, answer] of embedded) {
      asked++;
      const name = `${group.name}/${request.name}`;
      const status = misunderstood(request, answer, real.get(request));
      if (status !== undefined)
        unexpected.push(`${name}: both answer ${status}, not ${request.refused ?? 'with success'}`);
      for (const difference of compare(name, answer, real.get(request))) {
        if (acceptance.accepts(difference)) accepted++;
        else unexpected.push(describeDifference(difference));
      }
    }
    expect(unexpected.join('\n')).toBe('');
  });

  it('differs in nothing less than what is accepted', () => expect(acceptance.unneeded()).toEqual([]));

  it('is asked a few hundred requests', () => expect(asked).toBeGreaterThan(300));
});
