import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
  quantityToNumber,
  subtractQuantities,
} from './quantity.ts';

function must(value: string | number): Quantity {
  const parsed = parseQuantity(value);
  if (parsed === undefined) throw new Error(`not a quantity: ${value}`);
  return parsed;
}

describe('parseQuantity and formatQuantity', () => {
  const canonical: [input: string | number, output: string][] = [
    ['0', '0'],
    ['0n', '0'],
    ['0Ki', '0'],
    ['00', '0'],
    ['-0', '0'],
    ['1', '1'],
    ['+1', '1'],
    ['-1', '-1'],
    ['0.5', '500m'],
    ['.5', '500m'],
    ['1.', '1'],
    ['1.5', '1500m'],
    ['1500m', '1500m'],
    ['1000m', '1'],
    ['-1500m', '-1500m'],
    ['100', '100'],
    ['1000', '1k'],
    ['1200k', '1200k'],
    ['1000k', '1M'],
    ['1G', '1G'],
    ['1E', '1E'],
    ['1000E', '1000E'],
    ['1Ki', '1Ki'],
    ['1024Ki', '1Mi'],
    ['1.5Gi', '1536Mi'],
    ['0.5Ki', '512'],
    ['512Mi', '512Mi'],
    ['1025Ki', '1025Ki'],
    ['1.0001Ki', '1024102400u'],
    ['0.0001Ki', '102400u'],
    ['1e3', '1e3'],
    ['12e6', '12e6'],
    ['1E3', '1e3'],
    ['1e+3', '1e3'],
    ['1e-3', '1e-3'],
    ['10e2', '1e3'],
    ['1500e0', '1500'],
    ['0.1n', '1n'],
    ['1.5n', '2n'],
    ['-0.1n', '-1n'],
    ['1u', '1u'],
    ['16Ei', '9223372036854775807'],
    ['-16Ei', '-9223372036854775807'],
    ['1e-100', '1e-9'],
    [2, '2'],
    [0.25, '250m'],
    [1e21, '1e21'],
  ];
  it.each(canonical)('prints %s as %s', (input, output) => {
    expect(formatQuantity(must(input))).toBe(output);
  });

  const refused = ['', ' ', '1 ', ' 1', '.', '+', '-', 'Ki', '1K', '1ki', '1MI', '1mi', '1e', '1e1.5', '1.2.3', '--1'];
  it.each([...refused, '0x10', '1e101', '1e-101', `1${'0'.repeat(256)}`, 'NaN', 'Infinity', '1_000', '١'])(
    'refuses %j',
    (text) => {
      expect(parseQuantity(text)).toBeUndefined();
    },
  );
  it.each([[true], [null], [undefined], [[]], [{}], [Number.NaN], [Number.POSITIVE_INFINITY]])(
    'refuses the non-quantity %j',
    (value) => {
      expect(parseQuantity(value)).toBeUndefined();
    },
  );
});

describe('laws', () => {
  const quantity: fc.Arbitrary<Quantity> = fc.record({
    amount: fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }),
    format: fc.constantFrom('BinarySI', 'DecimalSI', 'DecimalExponent'),
  });

  it('reads back exactly what it printed', () => {
    fc.assert(
      fc.property(quantity, (value) => {
        expect(must(formatQuantity(value)).amount).toBe(value.amount);
      }),
    );
  });

  it('prints canonical texts as they are', () => {
    fc.assert(
      fc.property(quantity, (value) => {
        const text = formatQuantity(value);
        expect(formatQuantity(must(text))).toBe(text);
      }),
    );
  });

  it('subtracts what it added', () => {
    fc.assert(
      fc.property(quantity, quantity, (left, right) => {
        expect(subtractQuantities(addQuantities(left, right), right).amount).toBe(left.amount);
      }),
    );
  });

  it('orders as the numbers do', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), (left, right) => {
        expect(Math.sign(compareQuantities(must(left), must(right)))).toBe(Math.sign(left - right));
      }),
    );
  });

  it('never throws on any text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const parsed = parseQuantity(text);
        if (parsed !== undefined) expect(must(formatQuantity(parsed)).amount).toBe(parsed.amount);
      }),
    );
  });
});

describe('arithmetic', () => {
  it('keeps the notation of the left side, and takes the right one when that is zero', () => {
    expect(formatQuantity(addQuantities(must('1Gi'), must('1024')))).toBe('1048577Ki');
    expect(formatQuantity(addQuantities(must('0'), must('1Gi')))).toBe('1Gi');
    expect(formatQuantity(subtractQuantities(must('2'), must('500m')))).toBe('1500m');
  });

  it('converts to numbers', () => {
    expect(quantityToNumber(must('250m'))).toBe(0.25);
    expect(quantityToNumber(must('1Gi'))).toBe(2 ** 30);
    expect(quantityToNumber(must('-1500m'))).toBe(-1.5);
  });
});
