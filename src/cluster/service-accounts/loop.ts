import { type ClusterLoop, controllerIdentity, type LoopContext } from '../loop.ts';
import { configMaps, namespaces, secrets, serviceAccounts } from '../resources.ts';
import type { Informer } from '../../kube/informer.ts';
import { DEFAULT_ACCOUNT, ensureDefaultAccount } from './default-account.ts';
import type { ConfigMap } from './objects.ts';
import { perNamespace } from './per-namespace.ts';
import { AUTHORITY, authorityOf, ensureRootCertificate, ROOT_CERTIFICATE_NAME } from './root-certificate.ts';
import { TOKEN_TYPE } from './token-secret.ts';
import { byAccount, bySecret, TokensController } from './tokens.ts';

/** Gives every namespace its default service account. */
export const serviceAccountLoop: ClusterLoop = {
  name: 'serviceaccount',
  identity: controllerIdentity('service-account-controller'),
  component: 'serviceaccount-controller',
  make: ({ env, client, informers, metrics }) => {
    const accounts = informers.of(serviceAccounts);
    return perNamespace({
      name: 'serviceaccount',
      env,
      metrics,
      namespaces: informers.of(namespaces),
      objects: accounts,
      isConcerned: ({ metadata }) => metadata.name === DEFAULT_ACCOUNT,
      ensure: (namespace, signal) => ensureDefaultAccount(client, accounts, namespace, signal),
    });
  },
};

/** Tells everybody in every namespace how to know the API server. */
export const rootCertificateLoop: ClusterLoop = {
  name: 'root-ca-certificate-publisher',
  identity: controllerIdentity('root-ca-cert-publisher'),
  component: 'root-ca-cert-publisher',
  make: ({ env, client, informers, metrics }) => {
    const published = informers.of(configMaps, {}, { fieldSelector: `metadata.name=${ROOT_CERTIFICATE_NAME}` });
    const authorities = authoritiesIn(informers);
    const all = informers.of(namespaces);
    const controller = perNamespace({
      name: 'root_ca_cert_publisher',
      env,
      metrics,
      namespaces: all,
      objects: published,
      ensure: async (namespace, signal) => {
        const certificate = authorityOf(authorities);
        // It is looked at again when the server has said it.
        if (certificate !== undefined) await ensureRootCertificate(client, published, certificate, namespace, signal);
      },
    });
    authorities.onChange(() => {
      for (const { metadata } of all.list()) controller.enqueue(metadata.name ?? '');
    });
    return controller;
  },
};

/** Fills secrets that ask for a service account's token. */
export const tokensLoop: ClusterLoop = {
  name: 'serviceaccount-token',
  // As upstream: what makes credentials acts as the manager itself.
  identity: { user: 'system:kube-controller-manager', groups: [] },
  component: 'serviceaccount-token-controller',
  make: ({ env, client, informers, metrics }) =>
    new TokensController({
      env,
      client,
      metrics,
      accounts: informers.of(serviceAccounts, bySecret),
      secrets: informers.of(secrets, byAccount, { fieldSelector: `type=${TOKEN_TYPE}` }),
      authorities: authoritiesIn(informers),
    }),
};

function authoritiesIn(informers: LoopContext['informers']): Informer<ConfigMap> {
  const { namespace, name } = AUTHORITY;
  return informers.of(configMaps, {}, { namespace, fieldSelector: `metadata.name=${name}` });
}
