import type { Clock } from '../../src/env/ports.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import type { SyncError } from '../../src/sync/channel.ts';
import { AUTHORITY_SECRET, BUNDLE_CONFIG_MAP, ownBundleOf } from '../../src/sync/trust/objects.ts';
import { fromSecretData, issueLeaf } from '../../src/sync/trust/own-authorities.ts';
import { type Frame, VERSIONS } from '../../src/sync/wire/frame.ts';
import { GrpcNetwork } from '../../src/sync/wire/grpc-client.ts';
import type { Link } from '../../src/sync/wire/link.ts';
import type { VirtualMachines } from './virtual-machines.ts';

const SYSTEM = '/api/v1/namespaces/kubevirt';

/** Somebody who can prove to be a cluster that is trusted, having got hold of its authority, and knows nothing else. */
export class Impostor {
  /** Everything that he was told. */
  readonly heard: Frame[] = [];
  /** Why he is not listened to any more, once that is so. */
  readonly ended: Promise<SyncError>;
  readonly #link: Link;
  readonly #clusterId: string;
  #said = 0;

  private constructor(link: Link, clusterId: string) {
    this.#link = link;
    this.#clusterId = clusterId;
    this.ended = new Promise((ended) => link.listen({ frame: (frame) => void this.heard.push(frame), ended }));
  }

  /** Comes to a cluster at its address, as another one, with a certificate that was issued so long ago. */
  static async of(
    cluster: VirtualMachines,
    other: VirtualMachines,
    address: string,
    { ageMs = 0 } = {},
  ): Promise<Impostor> {
    const read = async ({ api }: VirtualMachines, path: string): Promise<Record<string, string>> =>
      (await api.request('GET', `${SYSTEM}/${path}`)).expect(200).json.data;
    const own = fromSecretData(await read(cluster, `secrets/${AUTHORITY_SECRET}`));
    const bundle = ownBundleOf(await read(cluster, `configmaps/${BUNDLE_CONFIG_MAP}`));
    const theirs = ownBundleOf(await read(other, `configmaps/${BUNDLE_CONFIG_MAP}`));
    if (!own || !bundle || !theirs) throw new Error('a cluster has no authority yet');
    const clock: Clock = { ...realClock, now: () => realClock.now() - ageMs };
    const leaf = await issueLeaf(own, { clock, random: realRandom }, bundle.clusterId);
    const authoritiesPem = theirs.authorities.map(String).join('');
    const trust = {
      clusterId: bundle.clusterId,
      material: () => ({ ...leaf, authoritiesPem }),
      identify: () => ({ clusterId: theirs.clusterId, validUntilMs: Number.POSITIVE_INFINITY }),
    };
    const link = await new GrpcNetwork({ clock: realClock, trust }).connect(address, new AbortController().signal);
    return new Impostor(link, bundle.clusterId);
  }

  /** Says who he says that he is. */
  greet(): void {
    const introduction = { clusterId: this.#clusterId, incarnation: 'impostor', resume: undefined, bundle: '' };
    this.#link.send({ kind: 'hello', versions: VERSIONS, ...introduction });
  }

  /** Tells of a guest that leaves, under a key that he thought of. */
  tell(key: string, half: object): void {
    const json = Buffer.from(JSON.stringify(half));
    this.#link.send({ kind: 'update', seq: ++this.#said, key, role: 'source', content: { kind: 'snapshot', json } });
  }

  leave(): void {
    this.#link.close();
  }
}
