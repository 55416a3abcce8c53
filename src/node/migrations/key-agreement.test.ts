import { createSecureContext } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { keyAgreementPem } from './key-agreement.ts';

describe('what keys are agreed on with', () => {
  it('is the group that everybody knows, as everybody writes it', () => {
    const pem = keyAgreementPem();
    expect(pem).toMatch(
      /^-----BEGIN DH PARAMETERS-----\nMIIBCAKCAQEA\/{11}JD9qiIWjCNMTGYouA3BzRKQJOCIpnzHQCC76mOxOb\n/,
    );
    expect(pem).toMatch(/wIBAg==\n-----END DH PARAMETERS-----\n$/);
    expect(() => createSecureContext({ dhparam: pem })).not.toThrow();
  });
});
