import { errorMessage } from '../../api/error-message.ts';
import { forbidden, invalid } from '../../api/field-error.ts';
import { approvalErrors } from '../../api/kinds/certificates/certificate-signing-request.ts';
import { objectAt, objectsAt, textAt } from '../../api/kinds/core/fields.ts';
import { formatTime, type Json, type JsonObject, type KubeObject } from '../../api/meta.ts';
import { invalidObject } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import { clone } from '../../machinery/clone.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { refusal } from '../admission/attributes.ts';
import { MASTERS_GROUP, type Authorizer } from '../auth/rbac.ts';
import { type CertificateRequest, parseCertificateRequest } from '../../machinery/x509/certificate-request.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../registry/contract.ts';
import { CERTIFICATES_GROUP, CLIENT_SIGNER, mayUseSigner, requestPemOf } from './certificate-policy.ts';

/**
 * What certificate requests need beyond their schema: the server, not the client, says who asks; the request must be
 * signed by its own key; through `approval` only the conditions change, and only by those who may approve for that
 * signer; through `status` only by those who may sign.
 */
export class CertificateSigningAdmission implements AdmissionPlugin {
  readonly name = 'CertificateSigning';
  readonly #clock: Clock;
  readonly #authorizer: Authorizer;

  constructor(options: { readonly clock: Clock; readonly authorizer: Authorizer }) {
    this.#clock = options.clock;
    this.#authorizer = options.authorizer;
  }

  handles({ target, operation }: AdmissionAttributes): boolean {
    const { group, plural } = target.definition;
    const isRequest = group === CERTIFICATES_GROUP && plural === 'certificatesigningrequests';
    return isRequest && (operation === 'CREATE' || operation === 'UPDATE');
  }

  async mutate(attributes: AdmissionAttributes): Promise<void> {
    const { object, oldObject, target } = attributes;
    if (!object) return;
    if (!oldObject) {
      setRequester(object, attributes);
      return;
    }
    object['spec'] = clone(oldObject['spec']);
    const subresource = target.subresource ?? '';
    if (subresource === 'approval') keepCertificate(object, oldObject);
    if (subresource !== '') this.#stampConditions(object, oldObject);
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    const { object, oldObject, target } = attributes;
    if (!object) return;
    if (!oldObject) await validateRequest(attributes, object);
    else if (target.subresource === 'approval') this.#validateApproval(attributes, object, oldObject);
    else if (target.subresource === 'status') this.#validateSigning(attributes, object, oldObject);
  }

  #validateApproval(attributes: AdmissionAttributes, object: KubeObject, oldObject: KubeObject): void {
    // The old one: nobody chooses the signer that they are asked about.
    const signerName = textAt(objectAt(oldObject, 'spec'), 'signerName');
    if (!mayUseSigner(this.#authorizer, attributes.context.user, 'approve', signerName)) {
      const signer = JSON.stringify(signerName);
      throw refusal(attributes, `user not permitted to approve requests with signerName ${signer}`);
    }
    const errors = [...approvalErrors(object, oldObject)];
    if (!deepEqual(object['spec'], oldObject['spec']))
      errors.push(forbidden('spec', 'updates may not change the spec'));
    refuseIf(attributes, errors);
  }

  #validateSigning(attributes: AdmissionAttributes, object: KubeObject, oldObject: KubeObject): void {
    const [status, oldStatus] = [objectAt(object, 'status'), objectAt(oldObject, 'status')];
    const isSame = ['certificate', 'conditions'].every((field) => deepEqual(status?.[field], oldStatus?.[field]));
    if (isSame) return;
    const signerName = textAt(objectAt(oldObject, 'spec'), 'signerName');
    if (!mayUseSigner(this.#authorizer, attributes.context.user, 'sign', signerName)) {
      const signer = JSON.stringify(signerName);
      throw refusal(attributes, `user not permitted to sign requests with signerName ${signer}`);
    }
  }

  /** Fills in the times that a client has left out; a condition that was there keeps the time of its transition. */
  #stampConditions(object: KubeObject, oldObject: KubeObject): void {
    const now = formatTime(this.#clock.now());
    const old = objectsAt(objectAt(oldObject, 'status'), 'conditions');
    for (const condition of objectsAt(objectAt(object, 'status'), 'conditions')) {
      const same = old.find((each) => each['type'] === condition['type'] && each['status'] === condition['status']);
      if (textAt(condition, 'lastUpdateTime') === '') condition['lastUpdateTime'] = now;
      if (textAt(condition, 'lastTransitionTime') === '') {
        condition['lastTransitionTime'] = textAt(same, 'lastTransitionTime') || now;
      }
    }
  }
}

/** Writes who asks into the spec, over whatever the client has put there. */
function setRequester(object: KubeObject, { context }: AdmissionAttributes): void {
  const spec = objectAt(object, 'spec');
  if (!spec) return;
  const { username, uid, groups, extra } = context.user;
  const requester: JsonObject = { username, groups: [...groups] };
  if (uid !== undefined) requester['uid'] = uid;
  if (extra) requester['extra'] = clone(extra) as unknown as Json;
  for (const field of ['username', 'uid', 'groups', 'extra']) delete spec[field];
  Object.assign(spec, requester);
}

function keepCertificate(object: KubeObject, oldObject: KubeObject): void {
  const conditions = objectAt(object, 'status')?.['conditions'];
  const status = clone(objectAt(oldObject, 'status') ?? {});
  if (conditions === undefined) delete status['conditions'];
  else status['conditions'] = conditions;
  object['status'] = status;
}

async function validateRequest(attributes: AdmissionAttributes, object: KubeObject): Promise<void> {
  const spec = objectAt(object, 'spec');
  const { username, groups } = attributes.context.user;
  // A webhook may have been here since: what it may change is not who asks.
  if (textAt(spec, 'username') !== username || !deepEqual(spec?.['groups'], groups)) {
    refuseIf(attributes, [forbidden('spec.username', 'the requester may not be changed')]);
  }
  let request: CertificateRequest;
  try {
    request = await parseCertificateRequest(requestPemOf(object));
  } catch (error) {
    const detail = errorMessage(error);
    return refuseIf(attributes, [invalid('spec.request', '<certificate request>', detail)]);
  }
  // A certificate cannot be taken back, and no role could limit its holder.
  if (
    textAt(objectAt(object, 'spec'), 'signerName') === CLIENT_SIGNER &&
    request.organizations.includes(MASTERS_GROUP)
  ) {
    throw refusal(attributes, `use of ${CLIENT_SIGNER} signer with ${MASTERS_GROUP} group is not allowed`);
  }
}

function refuseIf(attributes: AdmissionAttributes, errors: Parameters<typeof invalidObject>[3]): void {
  if (errors.length === 0) return;
  const { definition } = attributes.target;
  throw invalidObject(definition.group, definition.kind, attributes.object?.metadata.name ?? '', errors);
}
