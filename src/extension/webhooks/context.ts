import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { Clock, Random } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Cordons } from './cordons.ts';
import type { Rivals } from './rivals.ts';

/** What webhooks look things up with. */
export interface WebhookContext {
  /** The cluster's configuration as it is now. */
  readonly configuration: () => KubeVirtConfiguration;
  /** Nodes that have not said yet what their journals hold, since the API's data was last restored. */
  readonly unheard: () => readonly string[];
  /** Speaks as the extension. */
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  /** Tells people what they could not know from an answer that somebody else got. */
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly cordons: Cordons;
  /** Objects that stand in the way of others. */
  readonly rivals: Rivals;
}
