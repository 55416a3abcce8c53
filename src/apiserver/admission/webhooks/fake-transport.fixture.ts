import type { KubeObject } from '../../../api/meta.ts';
import { testEnv } from '../../../env/test.ts';
import { TestRegistry } from '../../registry/registry.fixture.ts';
import type { WebhookObservation, WebhookOptions } from './caller.ts';
import type { Webhook } from './configuration.ts';
import { TransportError, type WebhookRequest, type WebhookResponse, type WebhookTransport } from './transport.ts';
import type { Review } from './webhook-server.fixture.ts';

/** Webhooks that are functions of this process, for tests of everything but HTTPS. */

type Answer = Record<string, unknown> | Error | WebhookResponse;

/** Answers reviews by the path of the webhook's URL. */
export class FakeTransport implements WebhookTransport {
  readonly #answers = new Map<string, (review: Review) => Answer | Promise<Answer>>();
  readonly requests: WebhookRequest[] = [];
  readonly calls: { readonly path: string; readonly review: Review }[] = [];

  /** What the webhook at this path answers: fields of the response, a whole HTTP answer, or a failure. */
  on(path: string, answer: (review: Review) => Answer | Promise<Answer>): void {
    this.#answers.set(path, answer);
  }

  async call(request: WebhookRequest): Promise<WebhookResponse> {
    this.requests.push(request);
    const path = new URL(request.url).pathname;
    const review = JSON.parse(request.body) as Review;
    this.calls.push({ path, review });
    const answer = (await this.#answers.get(path)?.(review)) ?? new TransportError('nobody there');
    if (answer instanceof Error) throw answer;
    if (isResponse(answer)) return answer;
    const { apiVersion, kind, request: asked } = review;
    return jsonAnswer({ apiVersion, kind, response: { uid: asked.uid, ...answer } });
  }

  get paths(): string[] {
    return this.calls.map(({ path }) => path);
  }
}

function isResponse(answer: Record<string, unknown> | WebhookResponse): answer is WebhookResponse {
  return answer['body'] instanceof Uint8Array;
}

/** A 200 with this JSON. */
export function jsonAnswer(value: unknown, status = 200): WebhookResponse {
  return { status, body: Buffer.from(JSON.stringify(value)) };
}

const RULE = { apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], operations: ['*'] };

/** A webhook named after its path that wants everything. */
export function webhook(path: string, more: Partial<Webhook> = {}): Webhook {
  return {
    name: `${path}.example.com`,
    clientConfig: { url: `https://hooks.example.com/${path}` },
    rules: [RULE],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    ...more,
  };
}

/** Configurations of these webhooks. */
export function mutatingConfiguration(name: string, ...webhooks: readonly Webhook[]): KubeObject {
  const kind = 'MutatingWebhookConfiguration';
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name }, webhooks };
}

export function validatingConfiguration(name: string, ...webhooks: readonly Webhook[]): KubeObject {
  const kind = 'ValidatingWebhookConfiguration';
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name }, webhooks };
}

export interface WebhookScene {
  readonly registry: TestRegistry;
  readonly transport: FakeTransport;
  readonly observations: WebhookObservation[];
  readonly options: WebhookOptions;
}

/** A registry with namespaces `ns` (labels team=a) and `other`, and webhooks that are functions. */
export async function webhookScene(): Promise<WebhookScene> {
  const registry = await TestRegistry.open();
  await registry.put({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'ns', labels: { team: 'a' } },
  });
  await registry.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } });
  const transport = new FakeTransport();
  const observations: WebhookObservation[] = [];
  const options: WebhookOptions = {
    registry,
    env: testEnv(),
    transport,
    observer: (observation) => observations.push(observation),
  };
  return { registry, transport, observations, options };
}
