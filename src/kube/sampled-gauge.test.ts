import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { addSampledGauge, type Sample } from './sampled-gauge.ts';

describe('a sampled gauge', () => {
  it('says what is there when it is read, and nothing of what was there', async () => {
    const registry = new Registry();
    let guests: readonly Sample<'name'>[] = [[{ name: 'a' }, 1]];
    addSampledGauge({ registry, name: 'guests', help: 'Guests.', labels: ['name'], samples: () => guests });
    expect(await registry.metrics()).toBe('# HELP guests Guests.\n# TYPE guests gauge\nguests{name="a"} 1\n');
    guests = [
      [{ name: 'b "quoted"\n' }, 2],
      [{ name: 'c' }, 0],
    ];
    expect(await registry.metrics()).toBe(
      '# HELP guests Guests.\n# TYPE guests gauge\nguests{name="b \\"quoted\\"\\n"} 2\nguests{name="c"} 0\n',
    );
  });

  it('has no series where there is nothing, not even without labels', async () => {
    const registry = new Registry();
    const samples = (): Sample[] => [];
    addSampledGauge({ registry, name: 'waiting', help: 'Who waits.', type: 'counter', samples });
    expect(await registry.metrics()).toBe('# HELP waiting Who waits.\n# TYPE waiting counter\n');
  });
});
