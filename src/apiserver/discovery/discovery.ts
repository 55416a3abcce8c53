import type { ResourceDefinition } from '../../api/resource.ts';
import { ApiError, pathNotFound } from '../../api/status.ts';
import type { ApiRequest, ApiResponse } from '../http/message.ts';
import { covers, parseAccept } from '../http/accept.ts';
import { render, type RenderedDocument, respond } from './document.ts';
import { type DiscoveryGroup, groupsOf, type RemoteGroupVersion } from './groups.ts';
import { legacyGroup, legacyResources } from './legacy.ts';

/** What discovery is made from. */
export interface DiscoverySource {
  definitions(): readonly ResourceDefinition[];
  onDefinitionsChange(listener: () => void): void;
  /** Groups that other servers serve through APIServices. */
  remotes(): readonly RemoteGroupVersion[];
  onRemotesChange(listener: () => void): void;
}

type AggregatedVersion = 'v2' | 'v2beta1';

const JSON_TYPE = 'application/json';
const AGGREGATED_GROUP = 'apidiscovery.k8s.io';
const AGGREGATED_KIND = 'APIGroupDiscoveryList';

/** Answers what this server serves: aggregated (one document for all) and legacy (one per version). */
export class Discovery {
  readonly #source: DiscoverySource;
  #groups: readonly DiscoveryGroup[] | undefined;
  readonly #rendered = new Map<string, RenderedDocument>();

  constructor(source: DiscoverySource) {
    this.#source = source;
    const forget = (): void => {
      this.#groups = undefined;
      this.#rendered.clear();
    };
    source.onDefinitionsChange(forget);
    source.onRemotesChange(forget);
  }

  /** The groups as they are now, in order of priority. */
  groups(): readonly DiscoveryGroup[] {
    this.#groups ??= groupsOf(this.#source.definitions(), this.#source.remotes());
    return this.#groups;
  }

  /** The path of every group and version: `/api/v1`, `/apis/apps`, `/apis/apps/v1`. */
  paths(): string[] {
    return this.groups().flatMap(({ name, versions }) => {
      const root = name === '' ? '/api' : `/apis/${name}`;
      return [...(name === '' ? [] : [root]), ...versions.map(({ version }) => `${root}/${version}`)];
    });
  }

  /**
   * Answers `/api`, `/apis`, `/api/<version>`, `/apis/<group>` and `/apis/<group>/<version>`; undefined for any other
   * path. Throws 404 for what is not served and 405 for anything but a read.
   */
  handle(request: ApiRequest, path: string): ApiResponse | undefined {
    const parts = path.split('/').filter((part) => part !== '');
    const [root, ...rest] = parts;
    const isCore = root === 'api';
    if ((!isCore && root !== 'apis') || rest.length > (isCore ? 1 : 2)) return undefined;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw new ApiError(
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
        {},
      );
    }
    if (rest.length === 0) return this.#root(request, isCore);
    const [group = '', version] = isCore ? ['', rest[0]] : rest;
    const found = this.groups().find((each) => each.name === group && (isCore || group !== ''));
    if (!found) throw pathNotFound();
    if (version === undefined) {
      return this.#send(request, parts.join('/'), JSON_TYPE, () => ({
        kind: 'APIGroup',
        apiVersion: 'v1',
        ...legacyGroup(found),
      }));
    }
    const served = found.versions.find((each) => each.version === version);
    if (!served) throw pathNotFound();
    return this.#send(request, parts.join('/'), JSON_TYPE, () => legacyResources(group, served));
  }

  #root(request: ApiRequest, isCore: boolean): ApiResponse {
    const root = isCore ? 'api' : 'apis';
    const groups = (): readonly DiscoveryGroup[] => this.groups().filter((group) => (group.name === '') === isCore);
    const aggregated = aggregatedVersionOf(request);
    if (aggregated) {
      const type = `${JSON_TYPE};g=${AGGREGATED_GROUP};v=${aggregated};as=${AGGREGATED_KIND}`;
      const { headers, ...response } = this.#send(request, `${root} ${aggregated}`, type, () =>
        aggregatedDocument(groups(), aggregated),
      );
      // Whoever has it asks by its tag whether it is still so.
      return { ...response, headers: { ...headers, 'cache-control': 'public' } };
    }
    if (!isCore) {
      return this.#send(request, root, JSON_TYPE, () => ({
        kind: 'APIGroupList',
        apiVersion: 'v1',
        groups: groups().map(legacyGroup),
      }));
    }
    // Not cached: it names the address that this very client used.
    const serverAddress = request.headers['host'] ?? request.headers[':authority'] ?? '';
    const body = JSON.stringify({
      kind: 'APIVersions',
      versions: groups().flatMap((group) => group.versions.map(({ version }) => version)),
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
    });
    return { status: 200, headers: { 'content-type': JSON_TYPE, vary: 'Accept' }, body };
  }

  #send(request: ApiRequest, key: string, type: string, build: () => object): ApiResponse {
    let document = this.#rendered.get(key);
    if (!document) {
      document = render(build());
      this.#rendered.set(key, document);
    }
    return respond(request, document, { 'content-type': type });
  }
}

/** Which aggregated form the client likes best, if it likes one better than plain JSON. */
function aggregatedVersionOf(request: ApiRequest): AggregatedVersion | undefined {
  for (const range of parseAccept(request.headers['accept'])) {
    const { parameters } = range;
    const as = parameters.get('as');
    if (as === undefined && covers(range, JSON_TYPE)) return undefined;
    const version = parameters.get('v');
    if (range.type !== JSON_TYPE || as !== AGGREGATED_KIND || parameters.get('g') !== AGGREGATED_GROUP) continue;
    if (version === 'v2' || version === 'v2beta1') return version;
  }
  return undefined;
}

function aggregatedDocument(groups: readonly DiscoveryGroup[], version: AggregatedVersion): object {
  return {
    kind: AGGREGATED_KIND,
    apiVersion: `${AGGREGATED_GROUP}/${version}`,
    metadata: {},
    items: groups.map(({ name, versions }) => ({
      metadata: name === '' ? { creationTimestamp: null } : { name, creationTimestamp: null },
      versions,
    })),
  };
}
