import { describe, expect, it } from 'vitest';
import type { Json } from '../../api/meta.ts';
import { compileExpression } from './expression.ts';

/** The expected results are cel-go's, in Kubernetes' environment. */
function evaluate(text: string): Json {
  return compileExpression(text, ['object']).evaluate({
    object: {
      items: [
        { n: 1, s: 'a' },
        { n: 2, s: 'b' },
      ],
    },
  });
}

type Row = readonly [expression: string, result: Json];

describe('lists and sets', () => {
  const rows: Row[] = [
    ["['a','b'].join('-')", 'a-b'],
    ['[3,1,2].isSorted()', false],
    ['[1,2,3].isSorted()', true],
    ['[1,2,3].sum()', 6],
    ['[1.5,2.5].sum()', 4],
    ['[].sum()', 0],
    ['[1,2,3].min()', 1],
    ['[1,2,3].max()', 3],
    ["['b','a'].min()", 'a'],
    ['[1,2,1].indexOf(1)', 0],
    ['[1,2,1].lastIndexOf(1)', 2],
    ['[1,2,1].indexOf(5)', -1],
    ['[1,2,3].slice(1,2)', [2]],
    ['[3,1,2].sort()', [1, 2, 3]],
    ["['b','a'].sort()", ['a', 'b']],
    ['[1,2,3].reverse()', [3, 2, 1]],
    ['[1,1,2].distinct()', [1, 2]],
    ['[[1],[2,3]].flatten()', [1, 2, 3]],
    ['lists.range(3)', [0, 1, 2]],
    ['sets.contains([1,2],[1])', true],
    ['sets.equivalent([1,1,2],[2,1])', true],
    ['sets.intersects([1],[2])', false],
    ['dyn([1,2]).sum()', 3],
    ["['a', 'b'].join()", 'ab'],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('times and durations', () => {
  const rows: Row[] = [
    ["string(duration('1h'))", '3600s'],
    ["string(duration('1ms'))", '0.001s'],
    ["string(timestamp('2020-01-01T00:00:00.5Z'))", '2020-01-01T00:00:00.5Z'],
    ["timestamp('2020-01-01T00:00:00Z') < timestamp('2021-01-01T00:00:00Z')", true],
    ["timestamp('2020-01-01T00:00:00Z') + duration('1h') == timestamp('2020-01-01T01:00:00Z')", true],
    ["timestamp('2020-02-01T00:00:00Z') - timestamp('2020-01-01T00:00:00Z')", '2678400s'],
    ["timestamp('2020-05-06T07:08:09.123Z').getFullYear()", 2020],
    ["timestamp('2020-05-06T07:08:09.123Z').getMonth()", 4],
    ["timestamp('2020-05-06T07:08:09.123Z').getDate()", 6],
    ["timestamp('2020-05-06T07:08:09.123Z').getDayOfMonth()", 5],
    ["timestamp('2020-05-06T07:08:09.123Z').getDayOfWeek()", 3],
    ["timestamp('2020-05-06T07:08:09.123Z').getDayOfYear()", 126],
    ["timestamp('2020-05-06T07:08:09.123Z').getHours()", 7],
    ["timestamp('2020-05-06T07:08:09.123Z').getMinutes()", 8],
    ["timestamp('2020-05-06T07:08:09.123Z').getSeconds()", 9],
    ["timestamp('2020-05-06T07:08:09.123Z').getMilliseconds()", 123],
    ["timestamp('2020-05-06T07:08:09.123Z').getHours('America/New_York')", 3],
    ["timestamp('2020-05-06T07:08:09.123Z').getHours('+02:00')", 9],
    ["timestamp('2020-05-06T07:08:09.123Z').getHours('-02:30')", 4],
    ["duration('90m').getHours()", 1],
    ["duration('90m').getMinutes()", 90],
    ["duration('90m').getSeconds()", 5400],
    ["duration('123.321456789s').getMilliseconds()", 123321],
    ["int(timestamp('2020-01-01T00:00:00Z'))", 1577836800],
    ["google.protobuf.Timestamp == type(timestamp('2020-01-01T00:00:00Z'))", true],
    ["duration('1s') < duration('1m')", true],
    ["timestamp('2020-01-01T00:00:00Z') == timestamp('2020-01-01T01:00:00+01:00')", true],
    ['timestamp(0)', '1970-01-01T00:00:00Z'],
    ['string(timestamp(1))', '1970-01-01T00:00:01Z'],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('formatting', () => {
  const rows: Row[] = [
    ["'%s is %d and %.2f'.format(['a', 5, 1.234])", 'a is 5 and 1.23'],
    ["'%s'.format([[1,2]])", '[1, 2]'],
    ["'%s'.format([{'a':1}])", '{"a":1}'],
    ["'%x %X %o %b %e'.format([255, 'hi', 8, 5, 12345.678])", 'ff 6869 10 101 1.234568×10⁰⁴'],
    ["'100%%'.format([])", '100%'],
    ["'%s %s %s %s'.format([true, null, 1.5, 2u])", 'true null 1.5 2'],
    ["'%s'.format([duration('90s')])", '90s'],
    ["'%s'.format([timestamp('2020-01-01T00:00:00Z')])", '2020-01-01T00:00:00Z'],
    ["'%s'.format([type(1)])", 'int'],
    ["'%b'.format([true])", '1'],
    ["'%s'.format([{'a':'b'}])", '{"a":"b"}'],
    ["'%s'.format([{'a':[1,'x']}])", '{"a":[1, "x"]}'],
    ["'%s'.format([['a', 'b']])", '["a", "b"]'],
    ["'%s'.format([[1.5, 2.0]])", '[1.500000, 2.000000]'],
    ["'%s'.format([[duration('1s')]])", '[duration("1s")]'],
    ["'%s'.format([[timestamp('2020-01-01T00:00:00Z')]])", '[timestamp("2020-01-01T00:00:00Z")]'],
    ["'%s'.format([[b'abc']])", '[b"abc"]'],
    ["'%s'.format([[true]])", '[true]'],
    ["'%s'.format([[null]])", '[null]'],
    ["'%s'.format([{'a': 1.5, 'b': null, 'c': true}])", '{"a":1.500000, "b":null, "c":true}'],
    ["'%s'.format([{1: 2}])", '{1:2}'],
    ["'%s'.format([{true: duration('1s')}])", '{true:duration("1s")}'],
    ["'%s'.format([b'abc'])", 'abc'],
    ["'%s'.format([1.0])", '1'],
    ["'%s'.format([1234567.0])", '1.234567e+06'],
    ["'%s'.format([1e21])", '1e+21'],
    ["'%s'.format([0.000001])", '1e-06'],
    ["'%f'.format([1234567.891])", '1,234,567.891000'],
    ["'%.1f'.format([1234567.891])", '1,234,567.9'],
    ["'%.0f'.format([2.5])", '2'],
    ["'%e'.format([0.00012])", '1.200000×10⁻⁰⁴'],
    ["'%e'.format([1.0])", '1.000000×10⁰⁰'],
    ["'%e'.format([1e100])", '1.000000×10¹⁰⁰'],
    ["'%d'.format([1234567])", '1234567'],
    ["'%d'.format([5u])", '5'],
    ["'%x'.format([-255])", '-ff'],
    ["'%b'.format([-5])", '-101'],
    ["'%o'.format([5u])", '5'],
    ["'%X'.format([b'\\xff\\x01'])", 'FF01'],
    ["'%f'.format([double('NaN')])", 'NaN'],
    ["'%f'.format([double('Infinity')])", '∞'],
    ["'%s'.format([double('-Infinity')])", '-Inf'],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('semantic versions', () => {
  const rows: Row[] = [
    ["isSemver('1.2.3')", true],
    ["isSemver('v1.2')", false],
    ["isSemver('v1.2', true)", true],
    ["semver('1.2.3').major()", 1],
    ["semver('1.2.3').isLessThan(semver('1.10.0'))", true],
    ["semver('1.2.3-alpha').isLessThan(semver('1.2.3'))", true],
    ["semver('1.2.3-alpha.1').compareTo(semver('1.2.3-alpha.beta'))", -1],
    ["semver('v01.2', true).minor()", 2],
    ["isSemver('1.2.3-')", false],
    ["isSemver('01.2.3')", false],
    ["isSemver('1.2.3+build')", true],
    ["isSemver('1.2')", false],
    ["semver('1.2.3+a').compareTo(semver('1.2.3+b'))", 0],
    ["isSemver('v1.2-alpha', true)", false],
    ["isSemver(' 1.2.3')", false],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('named formats', () => {
  const rows: Row[] = [
    ["format.dns1123Label().validate('ok').hasValue()", false],
    [
      "format.dns1123Label().validate('Not_OK').value()",
      [
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      ],
    ],
    [
      "format.dns1123Subdomain().validate('a..b').value()",
      [
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    ],
    [
      "format.dns1035Label().validate('1a').value()",
      [
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
      ],
    ],
    [
      "format.qualifiedName().validate('a/b/c').value()",
      [
        "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
      ],
    ],
    [
      "format.labelValue().validate('-').value()",
      [
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      ],
    ],
    ["format.dns1123LabelPrefix().validate('ab-').hasValue()", false],
    ["format.named('uuid').value().validate('x').value()", ['does not match the UUID format']],
    ["format.named('nope').hasValue()", false],
    ["format.date().validate('2020-13-01').value()", ['invalid date']],
    ["format.datetime().validate('2020-01-01T00:00:00Z').hasValue()", false],
    ["format.byte().validate('*').value()", ['invalid base64']],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('IP addresses and networks', () => {
  const rows: Row[] = [
    ["isIP('10.0.0.1')", true],
    ["isIP('010.0.0.1')", false],
    ["isIP('::1')", true],
    ["isIP('::ffff:1.2.3.4')", false],
    ["isIP('fe80::1%eth0')", false],
    ["ip('10.0.0.1').family()", 4],
    ["ip('::1').family()", 6],
    ["ip('::1').isLoopback()", true],
    ["ip('224.0.0.1').isLinkLocalMulticast()", true],
    ["ip('169.254.1.1').isLinkLocalUnicast()", true],
    ["ip('10.0.0.1').isGlobalUnicast()", true],
    ["ip('255.255.255.255').isGlobalUnicast()", false],
    ["ip('0.0.0.0').isUnspecified()", true],
    ["ip.isCanonical('2001:db8::abcd')", true],
    ["ip.isCanonical('2001:DB8::ABCD')", false],
    ["string(ip('2001:DB8:0:0:0:0:0:1'))", '2001:db8::1'],
    ["string(ip('1:0:0:2:0:0:0:3'))", '1:0:0:2::3'],
    ["string(ip('1:0:2:3:4:5:6:7'))", '1:0:2:3:4:5:6:7'],
    ["ip('10.0.0.1') == ip('10.0.0.1')", true],
    ["cidr('10.0.0.0/8').containsIP('10.1.1.1')", true],
    ["cidr('10.0.0.0/8').containsIP(ip('11.1.1.1'))", false],
    ["cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", true],
    ["cidr('10.0.0.0/8').containsCIDR(cidr('0.0.0.0/0'))", false],
    ["cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", true],
    ["cidr('10.1.2.3/8').prefixLength()", 8],
    ["string(cidr('10.1.2.3/8').ip())", '10.1.2.3'],
    ["isCIDR('10.0.0.0/33')", false],
    ["isCIDR('2001:db8::/32')", true],
    ["type(ip('::1')) == net.IP", true],
    ["type(cidr('10.0.0.0/8')) == net.CIDR", true],
    ["isIP('1.2.3.4.5')", false],
    ["isIP('1::2::3')", false],
    ["isIP('1:2:3:4:5:6:7:8:9')", false],
    ["isIP(':::')", false],
    ["isIP('::')", true],
    ["isIP('1:2:3:4:5:6:1.2.3.4')", true],
    ["isIP('::g')", false],
    ["isCIDR('10.0.0.1')", false],
    ["isCIDR('10.0.0.0/08')", false],
    ["isCIDR('::ffff:1.2.3.4/96')", false],
    ["ip('ff02::1').isLinkLocalMulticast()", true],
    ["ip('fe80::1').isGlobalUnicast()", false],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('URLs', () => {
  const rows: Row[] = [
    ["url('https://example.com:80/path?a=1&a=2#frag').getHost()", 'example.com:80'],
    ["url('https://example.com:80/path?a=1&a=2#frag').getHostname()", 'example.com'],
    ["url('https://example.com:80/path?a=1&a=2#frag').getPort()", '80'],
    ["url('https://example.com:80/path?a=1&a=2#frag').getScheme()", 'https'],
    ["url('https://example.com:80/a%20b?a=1&a=2#frag').getEscapedPath()", '/a%20b'],
    ["url('https://example.com:80/path?a=1&a=2#frag').getQuery()", { a: ['1', '2'] }],
    ["url('https://[::1]:80/').getHost()", '[::1]:80'],
    ["url('https://[::1]:80/').getHostname()", '::1'],
    ["isURL('/absolute')", true],
    ["isURL('../relative')", false],
    ["isURL('https://a:b:c/')", false],
    ["isURL('https://user:pw@example.com/')", true],
    ["isURL('mailto:x@y')", true],
    ["isURL('http://example.com/%zz')", false],
    ["isURL('http://exa mple.com/')", false],
    ["isURL('http://[::1/')", false],
    ["isURL('')", false],
    ["isURL('*')", true],
    ["isURL('http://a:99999/')", true],
    ["isURL('http://a:x/')", false],
    ["url('http://u:p@h:1/p').getHost()", 'h:1'],
    ["url('/a/b?c').getEscapedPath()", '/a/b'],
    ["url('http://h?x=1').getQuery()", { x: ['1'] }],
    ["url('http://h/p?x=a+b&y=%20&z').getQuery()", { x: ['a b'], y: [' '], z: [''] }],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});

describe('quantities', () => {
  const rows: Row[] = [
    ["quantity('1Gi').isGreaterThan(quantity('500Mi'))", true],
    ["quantity('100m').compareTo(quantity('0.1'))", 0],
    ["isQuantity('1.5Gi')", true],
    ["isQuantity('abc')", false],
    ["quantity('50k').isInteger()", true],
    ["quantity('50k').asInteger()", 50000],
    ["quantity('9999999999999999999999999999999G').isInteger()", false],
    ["quantity('50m').isInteger()", false],
    ["quantity('1').add(quantity('2')).asInteger()", 3],
    ["quantity('1').add(5).asInteger()", 6],
    ["quantity('1k').sub(quantity('1')).asInteger()", 999],
    ["quantity('1.5').asApproximateFloat()", 1.5],
    ["sign(quantity('-5'))", -1],
    ["quantity('1k') == quantity('1000')", true],
    ["quantity('1e3').asInteger()", 1000],
    ["quantity('0.5').isInteger()", false],
    ["quantity('-1').compareTo(quantity('1'))", -1],
    ["isQuantity('1.5.5')", false],
    ["isQuantity('')", false],
    ["isQuantity('1 Gi')", false],
    ["isQuantity('.5')", true],
    ["isQuantity('5.')", true],
    ["isQuantity('+5')", true],
    ["isQuantity('1E')", true],
    ["isQuantity('1e')", false],
    ["isQuantity('1ki')", false],
  ];
  it.each(rows)('%s', (text, result) => {
    expect(evaluate(text)).toEqual(result);
  });
});
