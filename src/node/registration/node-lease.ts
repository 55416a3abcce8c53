import { formatMicroTime, type JsonObject, type OwnerReference } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { type Env, sleep } from '../../env/ports.ts';
import { Backoff } from '../../kube/backoff.ts';
import type { Client } from '../../kube/client.ts';
import { errorText } from '../../kube/error-text.ts';
import { type Lease, leaseResource } from '../../kube/leader-lease.ts';
import type { Service } from '../../kube/service.ts';
import { withinTime } from '../../kube/time-limit.ts';

/** Who knows the Node object. */
interface Registration {
  /** Resolves once the Node is this agent's. */
  readonly registered: Promise<void>;
  readonly uid: string | undefined;
}

const NAMESPACE = 'kube-node-lease';
/** As kubelets do: a lease of 40 s, renewed four times in that time. */
const DURATION_SECONDS = 40;
const RENEW_MS = 10_000;
/** Nodes that were started together do not renew together for ever. */
const JITTER = 0.04;
/** A renewal that takes longer is as good as none. */
const TIMEOUT_MS = 10_000;
const BACKOFF = { baseMs: 200, maxMs: 7_000 };

/** Says four times in forty seconds that the node is alive. */
export class NodeLease implements Service {
  readonly name = 'lease of the node';
  readonly needsLeadership = false;
  readonly #env: Env;
  readonly #client: Client;
  readonly #node: string;
  readonly #registration: Registration;

  constructor(options: {
    readonly env: Env;
    readonly client: Client;
    readonly name: string;
    readonly registration: Registration;
  }) {
    this.#env = options.env;
    this.#client = options.client;
    this.#node = options.name;
    this.#registration = options.registration;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#env;
    const backoff = new Backoff(random, BACKOFF);
    let failures = 0;
    // A node that is another agent's must not be kept alive for it.
    await Promise.race([this.#registration.registered, aborted(signal)]);
    while (!signal.aborted) {
      let waitMs = RENEW_MS * (1 - JITTER * random.number());
      try {
        await withinTime(clock, TIMEOUT_MS, signal, (within) => this.#renew(within));
        if (failures > 0) log.info('the lease of the node is renewed again', { failures });
        failures = 0;
        backoff.reset();
      } catch (error) {
        failures++;
        waitMs = backoff.next();
        if (!signal.aborted) log.warn('cannot renew the lease of the node', { failures, error: errorText(error) });
      }
      await sleep(clock, waitMs, signal);
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const uid = this.#registration.uid;
    const spec = {
      holderIdentity: this.#node,
      leaseDurationSeconds: DURATION_SECONDS,
      renewTime: formatMicroTime(this.#env.clock.now()),
    };
    // The lease goes with its Node; until there is one, it stands for itself.
    const owners: OwnerReference[] =
      uid === undefined ? [] : [{ apiVersion: 'v1', kind: 'Node', name: this.#node, uid }];
    try {
      const body: JsonObject = { spec };
      if (owners.length > 0) body['metadata'] = { ownerReferences: owners.map((owner) => ({ ...owner })) };
      await this.#client.patch(leaseResource, NAMESPACE, this.#node, { type: 'merge', body }, signal);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 404)) throw error;
      const lease: Lease = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: this.#node, namespace: NAMESPACE, ownerReferences: owners },
        spec,
      };
      await this.#client.create(leaseResource, lease, signal);
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
}
