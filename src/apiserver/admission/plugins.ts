import type { Env } from '../../env/ports.ts';
import { EscalationAdmission } from '../auth/escalation.ts';
import type { Authorizer, RbacAuthorizer } from '../auth/rbac.ts';
import { CertificateSigningAdmission } from '../kinds/certificate-signing.ts';
import type { AdmissionPlugin, Registry } from '../registry/contract.ts';
import { DefaultTolerations } from './default-tolerations.ts';
import { LimitRanger } from './limit-ranger.ts';
import { NamespaceLifecycle } from './namespace-lifecycle.ts';
import { NodeRestriction } from './node-restriction.ts';
import { Priority } from './priority.ts';
import { ResourceQuotaAdmission } from './resource-quota.ts';
import { ServiceAccountAdmission } from './service-account.ts';
import { StorageDefaultClass } from './storage-default-class.ts';
import { TaintNewNodes } from './taint-new-nodes.ts';
import type { WebhookOptions } from './webhooks/caller.ts';
import { type AfterMutation, MutatingWebhooks } from './webhooks/mutating.ts';
import { ValidatingWebhooks } from './webhooks/validating.ts';

export interface PluginOptions {
  readonly env: Env;
  readonly registry: Registry;
  readonly authorizer: Authorizer;
  readonly roles: RbacAuthorizer;
  readonly transport: WebhookOptions['transport'];
  readonly observer?: WebhookOptions['observer'];
  readonly afterMutation: AfterMutation;
  /** See ServiceAccountAdmissionOptions. */
  readonly hasDefaultAccounts: boolean;
}

/** Every plug-in in the order in which they are asked, which is kube-apiserver's: webhooks late, the quota last of all. */
export function admissionPlugins(options: PluginOptions): AdmissionPlugin[] {
  const { env, registry, authorizer, roles, afterMutation, hasDefaultAccounts } = options;
  return [
    new NamespaceLifecycle(registry),
    new LimitRanger(registry),
    new NodeRestriction(registry),
    new TaintNewNodes(),
    new ServiceAccountAdmission({ registry, clock: env.clock, hasDefaultAccounts }),
    new Priority(registry),
    new DefaultTolerations(),
    new StorageDefaultClass(registry),
    new CertificateSigningAdmission({ clock: env.clock, authorizer }),
    new EscalationAdmission(roles),
    new MutatingWebhooks({ ...options, afterMutation }),
    new ValidatingWebhooks(options),
    // Charged only when nothing else can refuse the object any more.
    new ResourceQuotaAdmission(registry, env.clock),
  ];
}
