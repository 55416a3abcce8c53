import { describe, expect, it } from 'vitest';
import type { MigrationConfiguration } from '../../api/kubevirt/migration-configuration.ts';
import { frozenOptions } from '../../migration/policies/options.ts';
import { channelStatus, wantedMethod } from './copy-method.ts';

const GIB = 2 ** 30;

describe('how a copy is sent', () => {
  it.each<[what: string, MigrationConfiguration, gibibytes: number, cpus: number, channels: string]>([
    ['a small guest goes over one', {}, 0.5, 8, 'one'],
    ['a big one over as many as there are processors', {}, 4, 4, '4 none'],
    ['but not over more than help', {}, 4, 64, '8 none'],
    ['nor where there is but one processor', {}, 4, 1, 'one'],
    ['where post-copy may follow, over one', { allowPostCopy: true }, 4, 8, 'one'],
    [
      'post-copy that may disturb nobody is none',
      { allowPostCopy: true, allowWorkloadDisruption: false },
      4,
      8,
      '8 none',
    ],
    ['with a limit, over one, which keeps it', { bandwidthPerMigration: '64Mi' }, 4, 8, 'one'],
    ['a limit of 0 is none', { bandwidthPerMigration: '0' }, 4, 8, '8 none'],
    ['packed, where that is asked for', { experimental: { compression: 'zstd' } }, 0.5, 1, '2 zstd'],
    ['not packed, where it is asked not to be', { experimental: { compression: 'none' } }, 4, 8, '8 none'],
    [
      'a limit goes before packing',
      { bandwidthPerMigration: '1Gi', experimental: { compression: 'zstd' } },
      4,
      8,
      'one',
    ],
    ['post-copy goes before packing', { allowPostCopy: true, experimental: { compression: 'zstd' } }, 4, 8, 'one'],
  ])('%s', (_, configuration, gibibytes, cpus, wanted) => {
    const options = frozenOptions(configuration);
    const method = wantedMethod(options, { memoryBytes: gibibytes * GIB, cpus });
    const { channels } = method;
    expect(channels ? `${channels.count} ${channels.compression}` : 'one').toBe(wanted);
    expect(method.allowsPostCopy && channels !== undefined).toBe(false);
    expect(channelStatus(method)).toEqual({
      encrypted: true,
      multifdChannels: channels?.count ?? 0,
      compression: channels?.compression ?? 'none',
    });
  });

  it('does not allow what nobody would start', () => {
    const facts = { memoryBytes: GIB, cpus: 2 };
    const allows = (configuration: MigrationConfiguration): boolean =>
      wantedMethod(frozenOptions(configuration), facts).allowsPostCopy;
    expect(allows({ allowPostCopy: true })).toBe(true);
    expect(allows({ allowPostCopy: true, allowWorkloadDisruption: false })).toBe(false);
    expect(allows({})).toBe(false);
  });

  it('is plain where that is asked for and both sides are known all the same, and then without post-copy', () => {
    const wants = (configuration: MigrationConfiguration, canBePlain: boolean) =>
      wantedMethod(frozenOptions(configuration), { memoryBytes: GIB / 2, cpus: 2, canBePlain });
    const plain = { disableTLS: true, allowPostCopy: true };
    expect(wants({}, true)).toEqual({ isEncrypted: true, allowsPostCopy: false });
    expect(wants(plain, false)).toEqual({ isEncrypted: true, allowsPostCopy: true });
    expect(wants(plain, true)).toEqual({ isEncrypted: false, allowsPostCopy: false });
    expect(channelStatus(wants(plain, true))).toMatchObject({ encrypted: false });
  });
});
