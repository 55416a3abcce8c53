import { describe, expect, it } from 'vitest';
import { servingWish } from './certificate-wish.ts';

describe('a certificate to serve with is asked for', () => {
  it.each<[string, readonly string[], string, readonly string[]]>([
    [
      'the name and the addresses of the node',
      ['10.0.0.2', 'fd00::2'],
      'https://10.0.0.1:6443',
      ['10.0.0.2', 'fd00::2'],
    ],
    ['nothing that the API server is reached at', ['10.0.0.1', '10.0.0.2'], 'https://10.0.0.1:6443', ['10.0.0.2']],
    ['nor that of six', ['fd00::1'], 'https://[fd00::1]:6443', []],
    ['nothing that every host calls itself', ['127.0.0.1', '::1'], 'https://api.example.com', []],
  ])('for %s', (_, addresses, server, hosts) =>
    expect(servingWish('n1', addresses, server).hosts).toEqual(['n1', ...hosts]),
  );
});
