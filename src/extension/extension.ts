import { X509Certificate } from 'node:crypto';
import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { KubeVirtConfiguration } from '../api/kubevirt/kube-virt.ts';
import { errorMessage } from '../api/error-message.ts';
import type { KubeObject } from '../api/meta.ts';
import { type Env, sleep } from '../env/ports.ts';
import { ObjectApplier } from '../kube/apply-objects.ts';
import { Backoff } from '../kube/backoff.ts';
import type { Client } from '../kube/client.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import type { Informer } from '../kube/informer.ts';
import { kubeVirts } from '../kube/kubevirt-resources.ts';
import type { KubeMetrics } from '../kube/metrics.ts';
import { addSampledGauge } from '../kube/sampled-gauge.ts';
import type { Service } from '../kube/service.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import type { KubeVirt } from '../api/kubevirt/kube-virt.ts';
import { SERVICE_NAME } from './identity.ts';
import { hostsOf, type Reach, registrations } from './registrations.ts';
import { type FrontProxyTrust, readTrust, userOf } from './server/front-proxy.ts';
import { HttpsServer } from './server/https-server.ts';
import type { ExtensionRequest, ExtensionResponse } from './server/message.ts';
import { isRecognised, servingCertificate, type ServingCertificate } from './server/serving-certificate.ts';
import { HttpsAgents } from './subresources/https-agents.ts';
import { OwnToken } from './subresources/own-token.ts';
import { SubresourceServer } from './subresources/subresource-server.ts';
import { WatchedCordons } from './webhooks/cordons.ts';
import { IndexedRivals } from './webhooks/rivals.ts';
import { WebhookServer } from './webhooks/webhook-server.ts';

export interface ExtensionOptions {
  readonly env: Env;
  /** Speaks as the extension's own identity. */
  readonly client: Client;
  readonly metrics?: Pick<KubeMetrics, 'certificates' | 'registry'>;
  /** Where to listen; port 0 takes a free one. */
  readonly listen: { readonly host: string; readonly port: number };
  /** How API servers reach it: where it listens, or through its Service. */
  readonly reach: 'address' | { readonly servicePort: number };
  /** Of Godwit itself. */
  readonly version: string;
  /** Is given what says why it is not ready; undefined where it is. */
  readonly readyUnless?: (notReady: () => string | undefined) => void;
}

/** The extension and what it needs, to be added to one manager. */
export function extensionServices(options: ExtensionOptions): readonly Service[] {
  const informers = new SharedInformers(options);
  const rivals = new IndexedRivals(options.client, informers);
  const cordons = new WatchedCordons(options.client, informers);
  const recorder = new EventRecorder({ client: options.client, env: options.env, component: SERVICE_NAME });
  const extension = new Extension(options, { configuration: informers.of(kubeVirts), rivals, cordons, recorder });
  options.readyUnless?.(() => extension.notReady);
  return [...informers.all(), recorder, extension];
}

/** How often it looks whether certificates, trust and registrations are what they should be. */
const CHECK_INTERVAL_MS = 60_000;
/** How long it holds up whoever starts after it. */
const PATIENCE_MS = 10_000;
/** How long whoever installs it is given to make its registrations, and how often it looks for them meanwhile. */
const INSTALLER_PATIENCE_MS = 60_000;
const INSTALLER_INTERVAL_MS = 1000;
const RETRY_BACKOFF = { baseMs: 200, maxMs: 10_000 };
const TEXT = { 'content-type': 'text/plain' };

/** What it knows of the cluster without asking, and who tells people. */
interface Knowledge {
  readonly configuration: Informer<KubeVirt>;
  readonly rivals: IndexedRivals;
  readonly cordons: WatchedCordons;
  readonly recorder: EventRecorder;
}

/** What was told to API servers, and by what they recognise us. */
interface Standing {
  readonly trust: FrontProxyTrust;
  readonly certificate: ServingCertificate;
}

/**
 * Webhooks and the aggregated API on one port. It registers itself once it listens, and keeps its registrations: whoever
 * changes them finds them as they were soon after. What is removed comes back only if it is missing at two looks: who uninstalls
 * us removes it while we still run. Every replica does the same, and says the same.
 */
class Extension implements Service {
  readonly name = 'extension';
  readonly needsLeadership = false;
  /** Resolves when API servers know of it, or after a while without: others may be what it waits for. */
  readonly synced: Promise<void>;
  readonly #options: ExtensionOptions;
  readonly #knowledge: Knowledge;
  #resolveSynced: () => void = () => undefined;
  #standing: Standing | undefined;
  /** The authorities that API servers were last told to recognise us by. */
  #announced: string | undefined;
  /** The registrations that were missing at the last look, and were left so; undefined before there was one. */
  #missing: ReadonlySet<string> | undefined;

  constructor(options: ExtensionOptions, knowledge: Knowledge) {
    this.#options = options;
    this.#knowledge = knowledge;
    this.synced = new Promise((resolve) => (this.#resolveSynced = resolve));
    options.metrics?.certificates('extension', () => {
      const { certificatePem } = this.#standing?.certificate ?? {};
      return certificatePem === undefined
        ? []
        : [['extension', Date.parse(new X509Certificate(certificatePem).validTo)]];
    });
    if (options.metrics)
      addSampledGauge({
        registry: options.metrics.registry,
        name: 'kubevirt_virt_api_ready_status',
        help: 'Whether the webhooks and subresources of this process are registered, and served.',
        samples: () => [[{}, this.notReady === undefined ? 1 : 0]],
      });
  }

  /**
   * Who waits until it is ready goes on to make machines, which API servers refuse until they know by what it is recognised.
   * Undefined once they do.
   */
  get notReady(): string | undefined {
    return this.#missing === undefined ? 'not registered yet' : undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { env } = this.#options;
    const patience = env.clock.setTimer(() => this.#resolveSynced(), PATIENCE_MS);
    try {
      await this.#serve(signal);
    } finally {
      patience.cancel();
    }
  }

  async #serve(signal: AbortSignal): Promise<void> {
    const { env } = this.#options;
    const standing = await this.#untilDone(() => this.#findStanding(signal), signal);
    if (!standing) return;
    this.#standing = standing;
    const agents = this.#agents();
    const server = this.#server(standing, agents);
    const port = await this.#listen(server);
    try {
      // Nobody is to be judged by what has not been read.
      const { configuration, rivals, cordons } = this.#knowledge;
      await Promise.race([Promise.all([configuration, rivals, cordons].map(({ synced }) => synced)), aborted(signal)]);
      await this.#untilDone(() => this.#leaveToInstaller(port, signal), signal);
      await this.#untilDone(() => this.#register(port, signal), signal);
      if (signal.aborted) return;
      env.log.info('the extension serves', { port });
      this.#resolveSynced();
      await this.#keep(server, port, standing.certificate, signal);
    } finally {
      await server.stop();
      agents.close();
    }
  }

  /** A port that somebody else has taken gives way to a free one where we are found by what we register. */
  async #listen(server: HttpsServer): Promise<number> {
    const { listen, reach } = this.#options;
    try {
      return await server.listen(listen.host, listen.port);
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (!isTaken || reach !== 'address') throw error;
      return server.listen(listen.host, 0);
    }
  }

  /** Looks again and again, until the signal aborts. */
  async #keep(server: HttpsServer, port: number, first: ServingCertificate, signal: AbortSignal): Promise<void> {
    const { env } = this.#options;
    let shown = first;
    for (;;) {
      await sleep(env.clock, CHECK_INTERVAL_MS, signal);
      if (signal.aborted) return;
      try {
        const standing = await this.#findStanding(signal);
        this.#standing = standing;
        const { certificate } = standing;
        // API servers hear of another authority a look before they see it, if they recognise what is shown until then.
        const isNews = certificate.authoritiesPem !== this.#announced;
        if (!isNews || !isRecognised(shown, certificate.authoritiesPem)) shown = certificate;
        server.renew(tlsOf({ ...standing, certificate: shown }));
        await this.#register(port, signal);
      } catch (error) {
        if (!signal.aborted) env.log.warn('the extension could not look after itself', { error: errorMessage(error) });
      }
    }
  }

  async #findStanding(signal: AbortSignal): Promise<Standing> {
    const { env, client } = this.#options;
    const [trust, certificate] = await Promise.all([
      readTrust(client, signal),
      servingCertificate({ env, client, namespace: SYSTEM_NAMESPACE, hosts: hostsOf(this.#reach(0)) }, signal),
    ]);
    return { trust, certificate };
  }

  /**
   * Who installs our Service installs our registrations, too, a moment after our pods, and is to find none: Helm takes what it has not
   * made for somebody else's, and gives up. Where nobody makes them, we do.
   */
  async #leaveToInstaller(port: number, signal: AbortSignal): Promise<void> {
    const reach = this.#reach(port);
    if (reach.kind !== 'service') return;
    const { clock } = this.#options.env;
    const untilMs = clock.now() + INSTALLER_PATIENCE_MS;
    const applier = await ObjectApplier.of(this.#options.client, signal);
    while ((await applier.missing(registrations({ reach }), signal)).length > 0 && clock.now() < untilMs) {
      await sleep(clock, INSTALLER_INTERVAL_MS, signal);
      if (signal.aborted) return;
    }
  }

  async #register(port: number, signal: AbortSignal): Promise<void> {
    if (!this.#standing) return;
    const { authoritiesPem } = this.#standing.certificate;
    const applier = await ObjectApplier.of(this.#options.client, signal);
    const all = registrations({ reach: this.#reach(port), authoritiesPem });
    const missing = (await applier.missing(all, signal)).map(nameOf);
    const left = new Set(missing.filter((name) => this.#missing?.has(name) === false));
    await applier.apply(
      all.filter((each) => !left.has(nameOf(each))),
      signal,
    );
    this.#missing = left;
    this.#announced = authoritiesPem;
  }

  #reach(port: number): Reach {
    const { reach, listen } = this.#options;
    if (reach !== 'address') return { kind: 'service', port: reach.servicePort };
    return { kind: 'address', host: listen.host, port };
  }

  #agents(): HttpsAgents {
    const { env, client } = this.#options;
    return new HttpsAgents({
      clock: env.clock,
      client,
      token: new OwnToken(client, env.clock),
      clusterAuthority: () => this.#standing?.trust.clusterAuthorityPem ?? '',
    });
  }

  #server(standing: Standing, agents: HttpsAgents): HttpsServer {
    const { env, client, version } = this.#options;
    const { clock, log } = env;
    const { recorder, rivals, cordons } = this.#knowledge;
    const configuration = (): KubeVirtConfiguration => {
      for (const { spec } of this.#knowledge.configuration.list()) return spec.configuration ?? {};
      return {};
    };
    const unheard = (): readonly string[] =>
      [...this.#knowledge.configuration.list()].flatMap(({ status }) => status?.restoration?.unheard ?? []);
    const webhooks = new WebhookServer({
      client,
      configuration,
      unheard,
      clock,
      random: env.random,
      recorder,
      rivals,
      cordons,
    });
    const subresources = new SubresourceServer({
      client,
      agents,
      clock,
      log,
      recorder,
      configuration,
      version,
      userOf: (request) => this.#standing && userOf(this.#standing.trust, request),
    });
    const handle = async (request: ExtensionRequest): Promise<ExtensionResponse> => {
      if (request.path === '/healthz') return { status: 200, headers: TEXT, body: 'ok' };
      if (request.path === '/readyz') return this.#readiness();
      return webhooks.owns(request.path) ? webhooks.handle(request) : subresources.handle(request);
    };
    return new HttpsServer({
      clock,
      log,
      identity: tlsOf(standing),
      handle,
      upgrade: (request) => subresources.upgrade(request),
    });
  }

  #readiness(): ExtensionResponse {
    const { notReady } = this;
    return { status: notReady === undefined ? 200 : 503, headers: TEXT, body: notReady ?? 'ok' };
  }

  /** Tries until it works; undefined when the signal aborts before. */
  async #untilDone<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    const { env } = this.#options;
    const backoff = new Backoff(env.random, RETRY_BACKOFF);
    for (;;) {
      if (signal.aborted) return undefined;
      try {
        return await attempt();
      } catch (error) {
        if (signal.aborted) return undefined;
        env.log.warn('the extension cannot start yet', { error: errorMessage(error) });
        await sleep(env.clock, backoff.next(), signal);
      }
    }
  }
}

function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.name}`;
}

function tlsOf({ certificate, trust }: Standing): ConstructorParameters<typeof HttpsServer>[0]['identity'] {
  return {
    certificatePem: certificate.certificatePem,
    keyPem: certificate.keyPem,
    clientAuthorityPem: trust.proxyAuthorityPem,
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
