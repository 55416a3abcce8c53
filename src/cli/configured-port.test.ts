import { expect, it } from 'vitest';
import { configuredPort } from './configured-port.ts';

it.each([
  ['9186', 9186],
  ['65535', 65_535],
  ['0', undefined],
  ['65536', undefined],
  ['-1', undefined],
  ['1e3', undefined],
  ['https', undefined],
  ['', undefined],
  [undefined, undefined],
])('takes %s for %s', (synchronizationPort, port) => {
  expect(configuredPort(synchronizationPort === undefined ? {} : { synchronizationPort })).toBe(port);
});

it('knows none before there is a configuration', () => {
  expect(configuredPort(undefined)).toBeUndefined();
});
