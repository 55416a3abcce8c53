import { expect } from 'vitest';
import { InProcessApi } from '../../../test/support/in-process.ts';
import { install } from '../../control/installation/install.ts';
import { realClock } from '../../env/real.ts';
import { Client } from '../../kube/client.ts';
import { InProcessTransport } from '../../kube/in-process-transport.ts';
import { wholeInstallation } from '../whole-installation.ts';
import { bootstrapRights } from './agents.ts';
import type { AskRules, Rule } from './rights-page.fixture.ts';

/** An API server in this process, with the kinds, rights and configuration of `godwit manifests`. */
export async function installedApi(): Promise<InProcessApi> {
  const api = await InProcessApi.start();
  const admin = { user: 'admin', groups: ['system:masters'] };
  const client = new Client(new InProcessTransport((request) => api.core.handle(request), admin), 'godwit');
  const { ours, initial } = wholeInstallation();
  await install(client, realClock, { ours: [...ours, ...bootstrapRights()], initial }, new AbortController().signal);
  return api;
}

/** Asks that server. */
export function rulesBy(api: InProcessApi): AskRules {
  return async ({ user, groups }, namespace) => {
    const answer = await api
      .as({ commonName: user, organizations: [...groups] })
      .request('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
        body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } },
      });
    const { resourceRules, incomplete } = answer.expect(201).json.status as {
      resourceRules: Rule[];
      incomplete: boolean;
    };
    expect(incomplete).toBe(false);
    return resourceRules;
  };
}
