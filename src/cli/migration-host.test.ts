import { describe, expect, it } from 'vitest';
import { chosenAddress, migrationHostOf } from './migration-host.ts';

const OWN = ['127.0.0.1', '192.168.7.20', '10.1.4.7', 'fd00:7::4', 'fe80::1'];

describe('where migrations arrive', () => {
  it.each([
    ['an address', '10.1.4.7', '10.1.4.7'],
    ['one that nobody lists', '127.0.0.2', '127.0.0.2'],
    ['a network', '10.1.0.0/16', '10.1.4.7'],
    ['a network that ends within a byte', '192.168.4.0/22', '192.168.7.20'],
    ['a network by one of its addresses', '10.1.9.9/16', '10.1.4.7'],
    ['a network of one', '10.1.4.7/32', '10.1.4.7'],
    ['a network of IPv6', 'fd00:7::/64', 'fd00:7::4'],
  ])('is %s', (_, wanted, host) => {
    expect(chosenAddress(wanted, OWN)).toBe(host);
  });

  it.each([
    ['storage0', /^--migration-address: storage0 is neither an address nor a network; give one such as/],
    ['0.0.0.0', /0\.0\.0\.0 is no address that other nodes reach; give one such as/],
    ['::', /no address that other nodes reach/],
    ['10.1.4.7/33', /neither an address nor a network/],
    ['10.2.0.0/16', /no address in 10\.2\.0\.0\/16, only 127\.0\.0\.1, 192\.168\.7\.20/],
    ['0.0.0.0/0', /has 127\.0\.0\.1 and 192\.168\.7\.20 and 10\.1\.4\.7 in 0\.0\.0\.0\/0; give one of them/],
  ])('is not %s', (wanted, message) => {
    expect(() => chosenAddress(wanted, OWN)).toThrow(message);
  });

  it('has to be an address of this machine', async () => {
    expect(await migrationHostOf('127.0.0.0/8')).toBe('127.0.0.1');
    await expect(migrationHostOf('203.0.113.7')).rejects.toThrow(
      /nobody can listen at 203\.0\.113\.7 here .*this machine has/,
    );
  });
});
