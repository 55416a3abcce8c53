/** Defaults of pods and of the pods in templates. They depend on other fields, or treat empty as absent. */

import type { JsonObject, KubeObject } from '../../../meta.ts';
import { canonicalizeAmounts, fillAmounts } from '../amounts.ts';
import {
  ensureObject,
  has,
  isSet,
  numberAt,
  objectAt,
  objectsAt,
  setDefault,
  setDefaultNumber,
  textAt,
} from '../fields.ts';
import { pullPolicyFor } from './image.ts';
import { applyPodResourceDefaults } from './pod-resources.ts';
import { qosClassOf } from './qos.ts';
import { applyReferenceDefaults } from './reference-defaults.ts';
import { applyVolumeDefaults } from './volume-defaults.ts';

const GRACE_PERIOD_SECONDS = 30;

/** Defaults of a whole pod. */
export function applyPodDefaults(pod: KubeObject): void {
  const spec = ensureObject(pod, 'spec');
  if (spec === undefined) return;
  applyPodSpecDefaults(spec);
  // Negative ones are taken for the shortest that is still graceful; a template keeps what it says.
  if ((numberAt(spec, 'terminationGracePeriodSeconds') ?? 0) < 0) spec['terminationGracePeriodSeconds'] = 1;
  for (const container of [...objectsAt(spec, 'containers'), ...objectsAt(spec, 'initContainers')]) {
    requestWhatIsLimited(container);
    if (isSet(spec, 'hostNetwork')) openHostPorts(container);
  }
  applyPodResourceDefaults(spec);
  setDefault(spec, 'enableServiceLinks', true);
  // Always computed: resources cannot change later, and a webhook may just have changed them.
  const status = objectAt(pod, 'status');
  if (status === undefined) return;
  status['qosClass'] = qosClassOf(spec);
  mirrorAddress(status);
}

/** The one address is the first of the list, whichever was written; the single field wins. */
function mirrorAddress(status: JsonObject): void {
  const address = textAt(status, 'podIP');
  const first = textAt(objectsAt(status, 'podIPs')[0], 'ip');
  if (address === first) return;
  if (address === '') status['podIP'] = first;
  else status['podIPs'] = [{ ip: address }];
}

/** Defaults that a pod's spec has wherever it stands, templates included. */
export function applyPodSpecDefaults(spec: JsonObject): void {
  setDefault(spec, 'dnsPolicy', 'ClusterFirst');
  setDefault(spec, 'restartPolicy', 'Always');
  setDefault(spec, 'terminationGracePeriodSeconds', GRACE_PERIOD_SECONDS);
  setDefault(spec, 'schedulerName', 'default-scheduler');
  ensureObject(spec, 'securityContext');
  mirrorServiceAccount(spec);
  canonicalizeAmounts(spec, 'overhead');
  canonicalizeAmounts(objectAt(spec, 'resources'), 'limits', 'requests');
  for (const volume of objectsAt(spec, 'volumes')) applyVolumeDefaults(volume);
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const container of objectsAt(spec, list)) applyContainerDefaults(container);
  }
}

/** The old name of the field and the new one say the same. */
function mirrorServiceAccount(spec: JsonObject): void {
  const name = textAt(spec, 'serviceAccountName') || textAt(spec, 'serviceAccount');
  if (name === '') return;
  spec['serviceAccountName'] = name;
  spec['serviceAccount'] = name;
}

function applyContainerDefaults(container: JsonObject): void {
  setDefault(container, 'imagePullPolicy', pullPolicyFor(textAt(container, 'image')));
  setDefault(container, 'terminationMessagePath', '/dev/termination-log');
  setDefault(container, 'terminationMessagePolicy', 'File');
  const resources = ensureObject(container, 'resources');
  canonicalizeAmounts(resources, 'limits', 'requests');
  for (const port of objectsAt(container, 'ports')) setDefault(port, 'protocol', 'TCP');
  for (const variable of objectsAt(container, 'env')) applyReferenceDefaults(objectAt(variable, 'valueFrom'));
  for (const field of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const probe = objectAt(container, field);
    if (probe !== undefined) applyProbeDefaults(probe);
  }
  const lifecycle = objectAt(container, 'lifecycle');
  applyHttpDefaults(objectAt(lifecycle, 'postStart'));
  applyHttpDefaults(objectAt(lifecycle, 'preStop'));
}

function applyProbeDefaults(probe: JsonObject): void {
  setDefaultNumber(probe, 'timeoutSeconds', 1);
  setDefaultNumber(probe, 'periodSeconds', 10);
  setDefaultNumber(probe, 'successThreshold', 1);
  setDefaultNumber(probe, 'failureThreshold', 3);
  applyHttpDefaults(probe);
  const grpc = objectAt(probe, 'grpc');
  if (grpc !== undefined && !has(grpc, 'service')) grpc['service'] = '';
}

function applyHttpDefaults(handler: JsonObject | undefined): void {
  const httpGet = objectAt(handler, 'httpGet');
  if (httpGet === undefined) return;
  setDefault(httpGet, 'path', '/');
  setDefault(httpGet, 'scheme', 'HTTP');
}

function requestWhatIsLimited(container: JsonObject): void {
  const resources = objectAt(container, 'resources');
  const limits = objectAt(resources, 'limits');
  if (resources === undefined || limits === undefined) return;
  const requests = ensureObject(resources, 'requests');
  if (requests !== undefined) fillAmounts(requests, limits);
}

function openHostPorts(container: JsonObject): void {
  for (const port of objectsAt(container, 'ports')) {
    const number = port['containerPort'];
    if (typeof number === 'number') setDefaultNumber(port, 'hostPort', number);
  }
}
