import { KUBEVIRT_CRDS } from '../../api/kubevirt/crds.ts';
import { PART_OF_GODWIT } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { registrations } from '../../extension/registrations.ts';
import { wholeInstallation } from '../whole-installation.ts';
import { agents, bootstrapRights } from './agents.ts';
import { deployments, EXTENSION_SERVICE_PORT } from './deployments.ts';
import type { Part } from './parts.ts';
import { defaultSettings, type OpenSettings, type Settings } from './settings.ts';

/**
 * All that an admin installs on Kubernetes, in the order in which it is to be applied; pure. Rights and kinds are those that
 * `godwit up` installs, too. Registrations come last, and without the authority by which the extension is recognised: it makes
 * that itself, writes it in, and renews it; whoever applies them again leaves it alone.
 */

export type Manifests = Readonly<Record<Part, readonly KubeObject[]>>;

/** The settings of an installation of which nobody has said anything. */
export function usualSettings(): Settings {
  return defaultSettings(initialConfiguration());
}

/** All objects of an installation. */
export function manifests(settings: OpenSettings): Manifests {
  const configuration = initialConfiguration();
  const { spec } = configuration as { spec?: object };
  return {
    crds: KUBEVIRT_CRDS,
    rights: [...wholeInstallation().ours, ...bootstrapRights()].map(labelled),
    components: [...deployments(settings), agents(settings)].map(labelled),
    configuration: [labelled({ ...configuration, spec: { ...spec, configuration: settings.configuration } })],
    registrations: registrations({ reach: { kind: 'service', port: EXTENSION_SERVICE_PORT } }),
  };
}

/** As all of it is: kinds and registrations have the label wherever they are installed. */
function labelled(object: KubeObject): KubeObject {
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, labels: { ...PART_OF_GODWIT, ...metadata.labels } } };
}

function initialConfiguration(): KubeObject {
  const [configuration] = wholeInstallation().initial;
  if (configuration?.kind !== 'KubeVirt') throw new Error('an installation begins with its configuration');
  return configuration;
}
