import { describe, expect, it } from 'vitest';
import { queryCapabilities } from './capabilities.ts';

/** A QEMU that answers what it is told to. */
function qemu(replies: (command: { execute: string; arguments?: { model: { name: string } } }) => unknown) {
  const runs: (readonly string[])[] = [];
  return {
    runs,
    run: async (_command: string, args: readonly string[]): Promise<string> => {
      runs.push(args);
      const lines = args.slice(args.indexOf('sh') + 3).map((line) => JSON.parse(line));
      return [
        '{"QMP": {"version": {}}}',
        ...lines.map((each) => JSON.stringify({ ...(replies(each) as object), id: each.id })),
        '{"timestamp": {}, "event": "SHUTDOWN"}',
        '',
      ].join('\n');
    },
  };
}

const MODELS: Record<string, object> = {
  host: { vendor: 'GenuineIntel', sse: true, avx: true, avx2: true, mpx: false, family: 6 },
  Small: { vendor: 'GenuineIntel', sse: true },
  Large: { vendor: 'GenuineIntel', sse: true, avx: true },
  Foreign: { vendor: 'AuthenticAMD', sse: true, avx: true, avx2: true },
};

const intel = () =>
  qemu(({ execute, arguments: args }) => {
    switch (execute) {
      case 'query-version':
        return { return: { qemu: { major: 7, minor: 2, micro: 1 } } };
      case 'query-cpu-definitions':
        return {
          return: [
            ...['Small', 'Large', 'Foreign', 'Large-v1', 'base'].map((name) => ({ name, 'migration-safe': true })),
            { name: 'TooLarge', 'migration-safe': true, 'unavailable-features': ['avx512f'] },
            { name: 'host', 'migration-safe': false },
          ],
        };
      case 'query-machines':
        return {
          return: [
            { name: 'pc-q35-7.2', alias: 'q35' },
            { name: 'pc-q35-1.0', deprecated: true },
            { name: 'microvm' },
            { name: 'isapc' },
          ],
        };
      case 'query-cpu-model-expansion':
        return { return: { model: { name: 'base', props: MODELS[args?.model.name ?? ''] } } };
      default:
        return { return: {} };
    }
  });

describe('what a QEMU says it can do', () => {
  it('comes down to models, features and machines that guests can really have', async () => {
    const processes = intel();
    expect(await queryCapabilities(processes, 'qemu', 'kvm')).toEqual({
      version: '7.2.1',
      cpuModels: ['Foreign', 'Large', 'Small'],
      cpuFeatures: ['avx', 'avx2', 'sse'],
      cpuVendor: 'Intel',
      hostModel: { name: 'Large', missingFeatures: ['avx2'] },
      machineTypes: ['microvm', 'pc-q35-7.2', 'q35'],
    });
    expect(processes.runs.every((args) => args.includes('kvm'))).toBe(true);
  });

  it('is no answer when it refuses or falls silent', async () => {
    const refusing = qemu(() => ({ error: { class: 'CommandNotFound' } }));
    await expect(queryCapabilities(refusing, 'qemu', 'tcg')).rejects.toThrow('CommandNotFound');
    const silent = { run: async () => '{"QMP": {}}\n' };
    await expect(queryCapabilities(silent, 'qemu', 'tcg')).rejects.toThrow('ended before');
  });
});
