import { describe, expect, it } from 'vitest';
import { parseGoDuration } from './duration.ts';
import { formatCheck } from './formats.ts';
import { formatIp, parseCidr, parseIp } from './ip.ts';
import { formatRfc3339, parseDate, parseRfc3339 } from './time.ts';
import { parseRequestUri } from './uri.ts';

describe('formats of custom resources', () => {
  it.each<[format: string, good: string[], bad: string[]]>([
    [
      'date-time',
      ['2020-01-02T03:04:05Z', '2020-01-02t03:04:05.678+02:00'],
      ['2020-01-02', '2020-13-02T03:04:05Z', '2020-01-02T25:04:05Z'],
    ],
    ['date', ['2020-02-29'], ['2019-02-29', '2020-1-2', '2020-01-02T00:00:00Z']],
    ['duration', ['1h30m', '0', '-1.5s', '22 ns', '3 weeks'], ['', 'x', '1']],
    ['byte', ['aGk=', 'aGVsbG8='], ['', 'aGk', 'a*==']],
    ['ipv4', ['10.0.0.1', '010.0.0.1'], ['10.0.0', '10.0.0.256', '::1']],
    ['ipv6', ['::1', 'fe80::1', '::ffff:1.2.3.4'], ['10.0.0.1', ':::', '1:2:3:4:5:6:7:8:9', 'fe80::1%eth0']],
    ['cidr', ['10.0.0.0/8', '::/0'], ['10.0.0.0', '10.0.0.0/33', '::/129']],
    [
      'mac',
      ['00:00:5e:00:53:01', '02-00-5e-10-00-00-00-01', '0000.5e00.5301'],
      ['00:00:5e:00:53', '00:00:5e-00:53:01', 'x'],
    ],
    ['uuid', ['123e4567-e89b-12d3-a456-426614174000', '123E4567E89B12D3A456426614174000'], ['123e4567', 'x']],
    ['uuid3', ['123e4567-e89b-32d3-a456-426614174000'], ['123e4567-e89b-42d3-a456-426614174000']],
    ['uuid4', ['123e4567-e89b-42d3-a456-426614174000'], ['123e4567-e89b-42d3-c456-426614174000']],
    ['uuid5', ['123e4567-e89b-52d3-a456-426614174000'], ['123e4567-e89b-12d3-a456-426614174000']],
    ['email', ['a@b.c', 'Name <a@b>', '"odd name"@b'], ['a', '@b', 'a@', 'a b@c']],
    [
      'hostname',
      ['example.com', 'a', 'my-host', 'xn--bcher-kva.example'],
      ['-a', 'a-', 'a..b', 'a.b1', 'a'.repeat(64), 'a_b'],
    ],
    ['uri', ['http://a/b', '/abs', 'urn:x:y'], ['rel/path', '', 'http://a b/', 'http://[::1/']],
    ['isbn', ['0321751043', '978-0321751041'], ['0321751044', 'x']],
    ['isbn10', ['0321751043'], ['978-0321751041']],
    ['isbn13', ['978-0321751041'], ['0321751043']],
    ['creditcard', ['4111-1111-1111-1111'], ['4111-1111-1111-1112', '1']],
    ['ssn', ['111-22-3333', '111223333'], ['11-22-3333']],
    ['hexcolor', ['#FFF', 'ffffff'], ['#FF', '#ggg']],
    ['rgbcolor', ['rgb(1,2, 3)'], ['rgb(1,2)']],
    ['bsonobjectid', ['507f1f77bcf86cd799439011'], ['507f1f77']],
    ['k8s-short-name', ['a-b'], ['A', 'a.b', 'a'.repeat(64)]],
    ['k8s-long-name', ['a.b-c'], ['A', 'a..b']],
  ])('%s', (format, good, bad) => {
    const check = formatCheck(format, false);
    for (const text of good) expect([text, check?.(text)]).toEqual([text, true]);
    for (const text of bad) expect([text, check?.(text)]).toEqual([text, false]);
  });

  it('leave unknown formats, and those of Go types, unchecked', () => {
    for (const format of ['', 'int32', 'int64', 'double', 'password', 'micro-time', 'quantity', 'constructor']) {
      expect(formatCheck(format, false)).toBeUndefined();
    }
  });
});

describe('formats of built-in kinds', () => {
  it.each<[format: string, good: string[], bad: string[]]>([
    ['date-time', ['2020-01-02T03:04:05Z', '2020-01-02T03:04:05.678+02:00'], ['2020-01-02T03:04:05']],
    ['micro-time', ['2020-01-02T03:04:05.000000Z', '2020-01-02T03:04:05Z'], ['yesterday']],
    ['duration', ['1h0m0s'], ['3 weeks', '']],
    ['byte', ['', 'aGk='], ['a']],
    ['quantity', ['1.5Gi', '100m', '-1', '12e6'], ['1.5.5', 'Gi', '']],
  ])('%s', (format, good, bad) => {
    const check = formatCheck(format, true);
    for (const text of good) expect([text, check?.(text)]).toEqual([text, true]);
    for (const text of bad) expect([text, check?.(text)]).toEqual([text, false]);
  });

  it('read a large secret without a hitch', () => {
    expect(formatCheck('byte', true)?.('QUJD'.repeat(1_000_000))).toBe(true);
  });
});

describe('durations', () => {
  it.each<[string, bigint | undefined]>([
    ['0', 0n],
    ['1h', 3_600_000_000_000n],
    ['1.5h', 5_400_000_000_000n],
    ['-2m3.5s', -123_500_000_000n],
    ['+1us', 1_000n],
    ['1µs', 1_000n],
    ['.5s', 500_000_000n],
    ['1ns', 1n],
    ['9223372036854775807ns', 9_223_372_036_854_775_807n],
    ['9223372036854775808ns', undefined],
    ['-9223372036854775808ns', -9_223_372_036_854_775_808n],
    ['1', undefined],
    ['1d', undefined],
    ['h', undefined],
    ['.s', undefined],
    ['1h 2m', undefined],
    [`${'9'.repeat(1000)}h`, undefined],
  ])('%s', (text, nanoseconds) => {
    expect(parseGoDuration(text)).toBe(nanoseconds);
  });
});

describe('times', () => {
  it.each<[string, string | undefined]>([
    ['2020-01-02T03:04:05Z', '2020-01-02T03:04:05Z'],
    ['2020-01-02T03:04:05.120Z', '2020-01-02T03:04:05.12Z'],
    ['2020-01-02T03:04:05.123456789Z', '2020-01-02T03:04:05.123456789Z'],
    ['2020-01-02T03:04:05+02:30', '2020-01-02T00:34:05Z'],
    ['1969-12-31T23:59:59.5Z', '1969-12-31T23:59:59.5Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
    ['2020-02-30T00:00:00Z', undefined],
    ['2020-01-02T03:04:60Z', undefined],
    ['2020-01-02 03:04:05Z', undefined],
    ['2020-01-02T03:04:05', undefined],
  ])('%s', (text, expected) => {
    const nanoseconds = parseRfc3339(text);
    expect(nanoseconds === undefined ? undefined : formatRfc3339(nanoseconds)).toBe(expected);
  });

  it('of dates are midnights', () => {
    expect(formatRfc3339(parseDate('2020-02-29') ?? 0n)).toBe('2020-02-29T00:00:00Z');
  });
});

describe('addresses', () => {
  it.each<[string, string | undefined]>([
    ['10.0.0.1', '10.0.0.1'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['::ffff:1.2.3.4', '::ffff:1.2.3.4'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['1.2.3', undefined],
    ['01.2.3.4', undefined],
    ['1::2::3', undefined],
    ['12345::', undefined],
    ['1:2:3:4:5:6:7::8', undefined],
    ['fe80::1%', undefined],
    ['', undefined],
  ])('%s', (text, expected) => {
    const address = parseIp(text);
    expect(address && formatIp(address)).toBe(expected);
  });

  it('with a prefix length are networks', () => {
    expect(parseCidr('10.1.2.3/8')?.prefixLength).toBe(8);
    for (const text of ['10.0.0.0/08', '10.0.0.0/', '10.0.0.0/33', 'fe80::1%eth0/64', '/8']) {
      expect(parseCidr(text)).toBeUndefined();
    }
  });
});

describe('request URIs', () => {
  it('are taken apart', () => {
    expect(parseRequestUri('HTTPS://user:pw@[::1]:80/a%20b?x=1&y')).toEqual({
      scheme: 'https',
      host: '[::1]:80',
      hostname: '::1',
      port: '80',
      path: '/a%20b',
      query: 'x=1&y',
    });
    expect(parseRequestUri('/only/path?q')).toMatchObject({ scheme: '', host: '', path: '/only/path', query: 'q' });
  });

  it.each(['', 'a/b', 'http://a:x/', 'http://a/%zz', 'http://a\nb/', 'http://a b/'])('%j is none', (text) => {
    expect(parseRequestUri(text)).toBeUndefined();
  });
});
