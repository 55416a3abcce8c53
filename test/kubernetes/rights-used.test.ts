import { afterAll, beforeAll, expect, it } from 'vitest';
import { installedApi, rulesBy } from '../../src/cli/manifests/installed-api.fixture.ts';
import { type Right, rightsOfComponents } from '../../src/cli/manifests/rights-page.fixture.ts';
import type { InProcessApi } from '../support/in-process.ts';
import { collectedUses } from '../support/kubernetes/audited-uses.ts';
import { linesOf, unusedRights } from '../support/kubernetes/unused-rights.ts';
import { RIGHTS_USED } from '../support/kubernetes/wanted.ts';

/**
 * All that docs/kubernetes-rights.md lets our components do was done by them in some suite on Kubernetes, by the audit logs of its API
 * servers. `npm run test:kubernetes` runs it last, after all suites.
 */

const ACCOUNT = 'system:serviceaccount:kubevirt:';
const NEVER_ASKED = 'The API server asks for it when an owner is named that blocks its deletion: it is no request.';
const ASKED_OF_AGENTS = 'It is asked of agents, which ask the API server whether the caller may.';
const BOOTSTRAPPER = "It is part of Kubernetes' role system:node-bootstrapper, which is given as it is.";

/** What no suite uses, and why it is needed even so. */
const ACCEPTED: ReadonlyMap<string, string> = new Map([
  [`${ACCOUNT}godwit-controller | everywhere | kubevirt.io | virtualmachines/finalizers | update`, NEVER_ASKED],
  [`${ACCOUNT}godwit-controller | everywhere | kubevirt.io | virtualmachineinstances/finalizers | update`, NEVER_ASKED],
  [
    `${ACCOUNT}godwit-controller | everywhere | certificates.k8s.io | signers kubernetes.io/kubelet-serving | approve`,
    'The API server asks for it when a request of that signer is approved: it is no request.',
  ],
  [
    `${ACCOUNT}godwit-controller | everywhere | core | persistentvolumeclaims | patch`,
    'Only a node that is lost between its choice and its volume makes the scheduler choose again: src/control/storage.',
  ],
  [`${ACCOUNT}godwit-extension | everywhere | core | nodes/guests | get`, ASKED_OF_AGENTS],
  [`${ACCOUNT}godwit-extension | everywhere | core | nodes/guests | update`, ASKED_OF_AGENTS],
  [`${ACCOUNT}kubevirt-agent | everywhere | certificates.k8s.io | certificatesigningrequests | list`, BOOTSTRAPPER],
  [`${ACCOUNT}kubevirt-agent | everywhere | certificates.k8s.io | certificatesigningrequests | watch`, BOOTSTRAPPER],
  [
    'system:nodes | everywhere | certificates.k8s.io | certificatesigningrequests/selfnodeclient | create',
    "Kubernetes' approver asks whether a node may have it: it is no request.",
  ],
]);

let api: InProcessApi;
let rights: readonly Right[];

beforeAll(async () => {
  api = await installedApi();
  rights = [...(await rightsOfComponents(rulesBy(api))).values()].flat();
});
afterAll(() => api.stop());

it('every right was used in some suite, or has a reason here', () => {
  if (RIGHTS_USED === undefined) throw new Error('what suites use is known after all: run `npm run test:kubernetes`');
  const unused = unusedRights(rights, collectedUses(RIGHTS_USED)).filter((line) => !ACCEPTED.has(line));
  const what =
    'nobody used these: take them away, have a suite use them in each run (GODWIT_TEST_FULL=1 shows whether one does that is sampled), or say here why they are needed';
  expect(unused, what).toEqual([]);
});

it('reasons are given for rights that there are', () => {
  const lines = new Set(linesOf(rights));
  expect([...ACCEPTED.keys()].filter((line) => !lines.has(line))).toEqual([]);
});
